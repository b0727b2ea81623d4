"""Recall of the track `sdmx`'s candidates: `python -m benchmarks.retrieval [--half a|b] [--misses]` or `--strangers`.

The suite `benchmarks/suites/sdmx_everyday` asks in everyday words for terms that official lists name otherwise; its
questions are in two halves by the SHA-256 of their ids. For several k it reports by dimension which share of the
targets' terms is offered if `candidates` is k, with 95% intervals (Wilson). No model is asked.

`--strangers` measures the 80 questions of `benchmarks/strangers.jsonl` instead, by code list. They were written from
the code lists alone, before their author had read the search or its list of everyday words, and nothing was tuned to
them: keep it so. Each has the codes that a statistician would choose. Those about goods have codes of the Harmonized
System of 2022 as well, which are measured if `--harmonized-system` names a file with the columns `hscode`,
`description` and `parent` (https://github.com/datasets/harmonized-system has one in the public domain).
"""

import argparse
import csv
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from eval_pipeline.core.model import Case
from eval_pipeline.statistics.intervals import wilson_interval
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import read_header
from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import Catalogue, CodeList, DataSet, Dimension, Term
from eval_pipeline_plugins.tracks.sdmx.search.retrieval import Retriever

FOLDER = Path(__file__).parent
SUITE = FOLDER / "suites" / "sdmx_everyday"
STRANGERS = FOLDER / "strangers.jsonl"
LISTS = {
    "goods": ("EVD:GOODS_TRADE", "GOODS"),
    "cpi": ("GSO.PRC:CPI", "ITEM"),
    "accounts": ("GSO.NA:ANA", "INDICATOR"),
    "trade": ("GSO.EXT:TRADE", "COMMODITY"),
}
"""The code lists that strangers were shown, by their names in the file: data set and dimension."""
HARMONIZED = "harmonized_system"
AT = (5, 20, 50, 300)
MISSES_AT = 20
Z = 1.96


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("a", "b"), help="only one half of the questions")
    parser.add_argument("--misses", action="store_true", help="list what is not among the first 20")
    parser.add_argument("--suite", type=Path, default=SUITE)
    parser.add_argument("--strangers", action="store_true", help="the questions of strangers")
    parser.add_argument("--harmonized-system", type=Path, help="a CSV file with the Harmonized System of 2022")
    arguments = parser.parse_args()
    for most in AT:
        if arguments.strangers:
            offered = of_strangers(most, arguments.harmonized_system)
        else:
            cases = read_suite(read_header(arguments.suite)).cases
            cases = [case for case in cases if f"half_{arguments.half or ''}" in f"{case.tags}"]
            offered = of_cases(cases, most, misses=arguments.misses and most == MISSES_AT)
        for name, known in sorted(offered.items()):
            share = sum(known) / len(known)
            low, high = wilson_interval(share, len(known), Z)
            print(f"{name:17} recall@{most:<3} {share:.3f} [{low:.3f}, {high:.3f}] of {len(known)} terms")


def of_cases(cases: Sequence[Case], most: int, *, misses: bool) -> Mapping[str, Sequence[bool]]:
    """Returns by dimension whether each term of the targets is offered; of several targets that offered best counts."""
    offered: defaultdict[str, list[bool]] = defaultdict(list)
    retriever = Retriever(cases[0].context.catalogue, most, cases[0].context.retriever.most_data_sets)
    for case in cases:
        for turn in case.turns:
            found = retriever.candidates(case.context.requests[turn.index])
            wanted = [[(p, term) for p, terms in t.places.items() for term in terms] for t in turn.gold.accepted]
            shares = [[(p, term, found.offers(p, term)) for p, term in pairs] for pairs in wanted]
            for (_, dimension), term, is_offered in max(shares, key=lambda s: sum(o for *_, o in s) / len(s)):
                offered[dimension].append(is_offered)
                if misses and not is_offered:
                    print(f"  {turn.question} -> {dimension} {': '.join(term)}")
    return offered


def of_strangers(most: int, harmonized: Path | None) -> Mapping[str, Sequence[bool]]:
    """Returns by code list whether each code that the strangers' questions ask for is offered."""
    shipped = [FOLDER.parent / "data" / "suites" / "sdmx_sample", SUITE]
    data_sets = {
        data_set.id: data_set
        for suite in shipped
        for data_set in read_suite(read_header(suite)).cases[0].context.catalogue.data_sets.values()
    }
    places = dict(LISTS)
    if harmonized is not None:
        data_sets[HARMONIZED] = _harmonized(harmonized)
        places[HARMONIZED] = (HARMONIZED, "GOODS")
    retrievers = {
        name: Retriever(Catalogue({data_set: data_sets[data_set]}), most, 1) for name, (data_set, _) in places.items()
    }
    offered: defaultdict[str, list[bool]] = defaultdict(list)
    for asked in strangers():
        for name, codes in ((asked["list"], asked["codes"]), (HARMONIZED, asked.get(HARMONIZED, ()))):
            if name in places and codes:
                found = retrievers[name].candidates(asked["question"]).places[places[name]]
                offered[name] += [code in {term.id for term in found} for code in codes]
    offered["all but HS"] = [known for name in LISTS for known in offered[name]]
    return offered


def strangers() -> list[dict[str, str | list[str]]]:
    """Returns the strangers' questions: `list` (in `LISTS`), `question`, `codes`, and for goods `harmonized_system`."""
    return [json.loads(line) for line in STRANGERS.read_text(encoding="utf-8").splitlines()]


def _harmonized(file: Path) -> DataSet:
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    ids = {row["hscode"] for row in rows}
    terms = (Term(row["hscode"], row["description"], "", row["parent"] if row["parent"] in ids else "") for row in rows)
    dimension = Dimension("GOODS", "Goods", CodeList(HARMONIZED, tuple(terms)))
    return DataSet(HARMONIZED, "Trade in goods", "", "", {"GOODS": dimension})


if __name__ == "__main__":
    main()

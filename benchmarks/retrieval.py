"""Recall of the track `sdmx`'s candidates by dimension: `python -m benchmarks.retrieval [--half a|b] [--misses]`.

The suite `benchmarks/suites/sdmx_everyday` asks in everyday words for terms that official lists name otherwise; its
questions are in two halves by the SHA-256 of their ids. For several k it reports which share of the targets' terms is
offered if `candidates` is k, with 95% intervals (Wilson). No model is asked.
"""

import argparse
from collections import defaultdict
from pathlib import Path

from eval_pipeline.statistics.intervals import wilson_interval
from eval_pipeline.suites import read_header
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.tracks.sdmx.retrieval import Retriever

SUITE = Path(__file__).parent / "suites" / "sdmx_everyday"
AT = (5, 20, 50, 300)
MISSES_AT = 20
Z = 1.96


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=("a", "b"), help="only one half of the questions")
    parser.add_argument("--misses", action="store_true", help="list what is not among the first 20")
    parser.add_argument("--suite", type=Path, default=SUITE)
    arguments = parser.parse_args()
    cases = [c for c in read_suite(read_header(arguments.suite)).cases if f"half_{arguments.half or ''}" in f"{c.tags}"]
    for most in AT:
        offered: defaultdict[str, list[bool]] = defaultdict(list)
        retriever = Retriever(cases[0].context.catalogue, most, cases[0].context.retriever.most_data_sets)
        for case in cases:
            for turn in case.turns:
                found = retriever.candidates(case.context.requests[turn.index])
                # Of several accepted targets, the one that is offered best counts.
                wanted = [[(p, term) for p, terms in t.places.items() for term in terms] for t in turn.gold.accepted]
                shares = [[(p, term, found.offers(p, term)) for p, term in pairs] for pairs in wanted]
                for (_, dimension), term, is_offered in max(shares, key=lambda s: sum(o for *_, o in s) / len(s)):
                    offered[dimension].append(is_offered)
                    if arguments.misses and most == MISSES_AT and not is_offered:
                        print(f"  {turn.question} -> {dimension} {': '.join(term)}")
        for dimension, known in sorted(offered.items()):
            share = sum(known) / len(known)
            low, high = wilson_interval(share, len(known), Z)
            print(f"{dimension:10} recall@{most:<3} {share:.3f} [{low:.3f}, {high:.3f}] of {len(known)} terms")


if __name__ == "__main__":
    main()

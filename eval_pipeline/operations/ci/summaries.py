"""Runs and comparisons as Markdown, for comments on pull requests and for the job summary of GitHub Actions."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from eval_pipeline.core import shown
from eval_pipeline.core.covering.coverage import Coverage
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.shown import Unit
from eval_pipeline.operations.ci.gates import GateVerdict
from eval_pipeline.operations.ci.markdown import block, bullets, code, table, words
from eval_pipeline.operations.runs.headline import Headline
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.tables import GOLD_EDITIONS

SUMMARY = "GITHUB_STEP_SUMMARY"
"""GitHub Actions: the file that the summary of a step is added to."""
MOST_EXAMPLES = 10
"""How many broken and fixed turns are listed; the workbench shows all."""
Row = Mapping[str, Any]
_NONE = "–"
_VERDICTS = {"a_better": "{a} is significantly better", "b_better": "{b} is significantly better"}


def add_to_summary(lines: Iterable[str]) -> None:
    """Adds lines to the step's summary; does nothing outside GitHub Actions.

    Raises:
        UsageError: the file cannot be written.
    """
    path = os.environ.get(SUMMARY)
    if not path:
        return
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n\n")
    except OSError as error:
        raise UsageError(f"{SUMMARY}: {path}: cannot be written: {error.strerror}") from error


def run_markdown(headlines: Sequence[Headline], verdicts: Sequence[GateVerdict]) -> Iterator[str]:
    """Yields the lines about a run: a row for each evaluation, then the gates and checks."""
    if headlines:
        yield "### Evaluations"
        yield ""
        head = ("suite", "model version", "turns", "accuracy [95% interval]", "US dollars per success")
        yield from table(head, [_headline_cells(found) for found in headlines])
        yield ""
    failed = [found for found in verdicts if found.failure is not None]
    yield f"{len(verdicts) - len(failed)} of {len(verdicts)} checks and gates passed."
    if failed:
        yield ""
        yield from bullets([f"**{words(found.name)}**: {words(found.failure or '')}" for found in failed])


def _headline_cells(found: Headline) -> list[str]:
    correct, dollars = found.overall["correct"], (found.cost[f"usd_per_success{end}"] for end in ("", "_low", "_high"))
    stand_in = " (simulated)" if found.simulated else ""
    return [
        code(found.partition.suite),
        code(found.partition.model_version) + stand_in,
        f"{correct['n']:,}" + (" (drawn)" if found.drawn else " (part)" if found.scope != "full" else ""),
        shown.estimate(correct["mean"], correct["low"], correct["high"]),
        shown.dollars(*dollars),
    ]


def comparisons_markdown(record: Record, comparisons: Mapping[str, Sequence[Row]], today: date) -> Iterator[str]:
    """Yields the lines of comparisons by suite; the first model version of a pair is the baseline."""
    for suite, rows in comparisons.items():
        for row in rows:
            yield from _comparison(record, suite, row, today)
            yield ""


def _comparison(record: Record, suite: str, row: Row, today: date) -> Iterator[str]:
    # Imported here: what is said of runs needs nothing of comparisons.
    from eval_pipeline.analysis.comparisons.pairs import is_refused
    from eval_pipeline.reports.comparison.contracts import contract_rows, order_sentence
    from eval_pipeline.reports.comparison.differing import sides_of_pair
    from eval_pipeline.reports.comparison.words import is_of_file, pair_names

    a, b = map(code, pair_names(row))
    yield f"### {code(suite)}: {a} → {b}"
    yield ""
    if row["simulated"]:
        yield "Stand-ins are among them; they are no real models."
        yield ""
    if row.get("causes"):
        yield f"Made otherwise: {words(row['causes'])}."
        yield ""
    if row.get("prompt_difference"):
        yield from block(row["prompt_difference"], "diff")
        yield ""
    refused = is_refused(row["reason"])
    yield from table(("", f"baseline {a}", b), list(_cells(record, suite, row, today, refused=refused)))
    yield ""
    yield f"**{_verdict(row, refused=refused)}**"
    if row["note"]:
        yield ""
        yield words(row["note"])
    if refused:
        return
    if not is_of_file(row) and (order := order_sentence(contract_rows(record, sides_of_pair(suite, row)))):
        yield ""
        yield words(f"Under each contract, each on all of its own turns: {order}.")
    yield from _changed(record, suite, row, (a, b))


def _changed(record: Record, suite: str, row: Row, names: Sequence[str]) -> Iterator[str]:
    """Yields how many turns are broken and fixed, with some of them and their questions."""
    from eval_pipeline.reports.comparison.differing import examples

    told = examples(record, suite, row, MOST_EXAMPLES)
    for (change, turns), name in zip(told.items(), names, strict=True):
        yield ""
        yield f"{change.capitalize()}: {shown.turns(row[change])} that both answered and only {name} got right."
        if turns:
            yield ""
            yield from bullets([f"{code(turn)} {words(question)}".rstrip() for turn, question in turns])
        if row[change] > MOST_EXAMPLES:
            yield f"- and {row[change] - MOST_EXAMPLES:,} more"


def _cells(record: Record, suite: str, row: Row, today: date, *, refused: bool) -> Iterator[Sequence[str]]:
    """Yields the rows of the table about two evaluations: first what is compared, then the result."""
    from eval_pipeline.reports.contents.gold import data_text, edition_text

    editions = [_editions(record, suite, row, side) for side in ("a", "b")]
    yield "evaluated", *(_when(row[f"eval_date_{side}"], today) for side in ("a", "b"))
    yield "edition of the gold", *(_told(edition_text(found)) for found in editions)
    yield "edition of the data", *(_told(data_text(found)) for found in editions)
    if refused:
        return
    yield "turns", *(words(Coverage.from_row(row, f"_{side}").text()) for side in ("a", "b"))
    rates = shown.rates(row["accuracy_a"], row["accuracy_b"], row["low"], row["high"])
    yield f"accuracy on {shown.counted(row['n'], 'common turn', 'common turns')}", *rates
    costs: Mapping[Unit, str] = {"tokens": "tokens per turn", "usd": "US dollars per turn"}
    for unit, label in costs.items():
        if row[f"{unit}_difference"] is not None:
            yield label, *(shown.figure(row[f"{unit}_{side}"], unit) for side in ("a", "b"))


def _editions(record: Record, suite: str, row: Row, side: str) -> list[dict[str, Any]]:
    from eval_pipeline.reports.comparison.differing import sides_of_pair

    if row.get(f"file_{side}") is not None:
        return []
    key = RecordKey.of(sides_of_pair(suite, row)["ab".index(side)])
    found: list[dict[str, Any]] = (
        record.read(GOLD_EDITIONS, key).to_pylist() if record.header(GOLD_EDITIONS, key) else []
    )
    return found


def _told(text: str | None) -> str:
    return _NONE if text is None else words(text)


def _when(day: date, today: date) -> str:
    days = (today - day).days
    if days < 0:
        return f"{day} (dated ahead)"
    ago = f"{shown.counted(days, 'day', 'days')} ago" if days else "today"
    return f"{day} ({ago})"


def _verdict(row: Row, *, refused: bool) -> str:
    if refused:
        return words(row["reason"][:1].upper() + row["reason"][1:])
    if row["verdict"] is None:
        return f"No test: {words(row['reason'])}"
    from eval_pipeline.reports.comparison.words import pair_names

    a, b = map(code, pair_names(row))
    said = _VERDICTS.get(row["verdict"], "Not significant: these turns do not show that they differ").format(a=a, b=b)
    told = f"{shown.points(row['difference'], row['low'], row['high'])} points"
    if row["low_corrected"] is not None:
        told += f" [{shown.interval(row['low_corrected'], row['high_corrected'], 'points')}]"
    corrected = f", both corrected for {row['pairs']:,} pairs" if row["pairs"] > 1 else ""
    return f"{said}: {told}, p {shown.p_value(row['p_corrected'])}{corrected}"

"""Tables about the gold for pages."""

from collections.abc import Iterator, Sequence

from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.gold import (
    Row,
    editions_query,
    overrides_query,
    suspects_query,
    undecided,
    with_and_without,
)
from eval_pipeline.reports.html.render import Sheet
from eval_pipeline.reports.shown import UNKNOWN, shown_count, shown_interval, shown_rate

_MOST_SUSPECTS = 50
_LONGEST = 300


def gold_sheets(evaluation: Evaluation) -> Iterator[Sheet]:
    """Yields tables of figures with and without overrides, of overrides and of suspects; empty tables are left out."""
    part = evaluation.partition
    if pairs := with_and_without(evaluation.editions):
        headers = ("figure", "with overrides", "95% interval", "without", "95% interval", "n with", "n without")
        rows = [_pair(*pair) for pair in pairs]
        yield Sheet("Figures with and without overrides", headers, rows, frozenset(), [editions_query(part)])
    if evaluation.overrides:
        columns = ("turn", "action", "published", "overridden", "who", "why")
        rows = [_override(row) for row in evaluation.overrides]
        yield Sheet("Overridden gold", columns, rows, frozenset({1, 2, 3, 4, 5}), [overrides_query(part.suite)])
    if evaluation.suspects:
        yield suspects_sheet(part.suite, evaluation.suspects)


def suspects_sheet(suite: str, suspects: Sequence[Row]) -> Sheet:
    """Returns a table of the most doubtful turns that nobody has decided on yet."""
    found = undecided(suspects)
    turns = len({row["turn_id"] for row in found})
    more = f"; the first {_MOST_SUSPECTS} of {len(found):,} reasons" if len(found) > _MOST_SUSPECTS else ""
    headers = ("turn", "score", "reason", "expected", "agreed answer", "model versions", "evidence")
    rows = [_suspect(row) for row in found[:_MOST_SUSPECTS]]
    caption = f"Suspected gold: {turns:,} turns to look at{more}"
    return Sheet(caption, headers, rows, frozenset({2, 3, 4, 6}), [suspects_query(suite)])


def _pair(scored: Row, published: Row) -> list[str]:
    return [
        scored["metric"],
        shown_rate(scored["mean"]),
        shown_interval(scored, "rate"),
        shown_rate(published["mean"]),
        shown_interval(published, "rate"),
        shown_count(scored["n"]),
        shown_count(published["n"]),
    ]


def _override(row: Row) -> list[str]:
    told = [row["action"], row["published"] or UNKNOWN, row["overridden"] or UNKNOWN, row["who"], row["why"]]
    return [_place(row), *map(_short, told)]


def _suspect(row: Row) -> list[str]:
    told = [row["reason"], row["expected"] or UNKNOWN, row["agreed_answer"] or UNKNOWN]
    return [
        _place(row), f"{row['turn_score']:.2f}", *map(_short, told), shown_count(row["model_versions"]),
        _short(row["evidence"]),
    ]  # fmt: skip


def _place(row: Row) -> str:
    return str(row["turn_id"]).removeprefix(f"{row['suite']}/")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"

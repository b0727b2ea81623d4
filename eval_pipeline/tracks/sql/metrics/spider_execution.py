"""Execution match as Spider's test-suite evaluator counts it (taoyds/test-suite-sql-eval, exec_eval.py)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics.published import WHERE_NULL, Rows, published_result

_MOST_TRIES = 5_000
"""How many partial orders of columns are tried before two results count as different."""


def same_bags(generated: Rows, expected: Rows, ordered: bool) -> float:
    """Returns 1.0 if some order of the columns makes both results equal.

    Args:
        generated: rows.
        expected: rows.
        ordered: whether the order of rows counts, i.e. the accepted query has an ORDER BY; otherwise bags are compared.
    """
    if not generated and not expected:
        return 1.0
    if len(generated) != len(expected) or len(generated[0]) != len(expected[0]):
        return 0.0
    mine, theirs = [_sorted_row(row) for row in generated], [_sorted_row(row) for row in expected]
    if (mine != theirs) if ordered else (set(mine) != set(theirs)):
        return 0.0
    return float(_fits(generated, expected, ordered, (), iter(range(_MOST_TRIES))))


def _sorted_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    # The evaluator rejects results by this first, which is stricter for values such as 1 and 1.0.
    return tuple(sorted(row, key=lambda cell: str(cell) + str(type(cell))))


def _fits(generated: Rows, expected: Rows, ordered: bool, chosen: tuple[int, ...], tries: Iterator[int]) -> bool:
    """Returns whether the chosen generated columns, in this order, can be completed to all expected columns."""
    if next(tries, None) is None:
        return False
    width = len(chosen)
    part = [tuple(row[place] for place in chosen) for row in generated]
    wanted = [row[:width] for row in expected]
    if (part != wanted) if ordered else (Counter(part) != Counter(wanted)):
        return False
    rest = [place for place in range(len(expected[0])) if place not in chosen]
    # Of columns with the same cells only one needs to be tried.
    different = {tuple(row[place] for row in generated): place for place in reversed(rest)}
    return not rest or any(_fits(generated, expected, ordered, (*chosen, place), tries) for place in different.values())


def spider_execution(
    generated: str | None, execution: str | None, published: Mapping[str, float], should_pass: bool
) -> MetricResult:
    """Returns the score of a turn."""
    return published_result("spider_execution", generated, execution, published, should_pass)


METRIC = Metric(
    "spider_execution",
    spider_execution,
    "boolean",
    "Spider's evaluator on the given database, DISTINCT kept: equal bags of rows (lists if the accepted query has "
    f"ORDER BY) under some order of columns; {WHERE_NULL}",
)

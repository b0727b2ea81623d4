"""Execution match as Spider's test-suite evaluator counts it (taoyds/test-suite-sql-eval, exec_eval.py)."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.core.model import MetricResult
from eval_pipeline.table_comparison import Table, TooManyOrdersError, column_orders
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics.published import WHERE_NULL, Rows, published_result


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
    # Cells are equal as Python says, without tolerance: each gets a whole number.
    numbers: dict[Any, int] = {}
    ours, others = (
        [tuple(numbers.setdefault(cell, len(numbers)) for cell in row) for row in rows]
        for rows in (generated, expected)
    )
    names = (None,) * len(generated[0])
    ties = tuple(range(len(expected))) if ordered else None
    try:
        orders = column_orders([(Table(names, ours), Table(names, others, ties))], every=False)
        return float(next(orders, None) is not None)
    except TooManyOrdersError:
        return 0.0


def _sorted_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    # The evaluator rejects results by this first, which is stricter for values such as 1 and 1.0.
    return tuple(sorted(row, key=lambda cell: str(cell) + str(type(cell))))


def spider_execution(
    generated: str | None,
    execution: str | None,
    published: Mapping[str, float],
    should_pass: bool,
    changes_data: bool = False,
) -> MetricResult:
    """Returns the score of a turn."""
    return published_result("spider_execution", generated, execution, published, should_pass, changes_data)


METRIC = Metric(
    "spider_execution",
    spider_execution,
    "boolean",
    "Spider's evaluator on the given database, DISTINCT kept: equal bags of rows (lists if the accepted query has "
    f"ORDER BY) under some order of columns; {WHERE_NULL}",
)

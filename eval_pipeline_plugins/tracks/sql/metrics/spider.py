"""Spider's metrics: execution match and test suites (taoyds/test-suite-sql-eval), exact match and its parts."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.core.model import MetricResult
from eval_pipeline.table_comparison.rows import TooManyOrdersError, column_orders
from eval_pipeline.table_comparison.table import ComparedTable
from eval_pipeline_plugins.tracks.sql.metrics.published import Rows, published_result
from eval_pipeline_plugins.tracks.sql.metrics.tables_read import NO_SQL_EXPECTED


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
        orders = column_orders([(ComparedTable(names, ours), ComparedTable(names, others, ties))], every=False)
        return float(next(orders, None) is not None)
    except TooManyOrdersError:
        return 0.0


def _sorted_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    # The evaluator rejects results by this first, which is stricter for values such as 1 and 1.0.
    return tuple(sorted(row, key=lambda cell: str(cell) + str(type(cell))))


def test_suite(
    generated: str | None,
    execution: str | None,
    published: Mapping[str, float],
    further_databases: int,
    should_pass: bool,
    changes_data: bool,
) -> MetricResult:
    """Returns the score of a turn."""
    if should_pass and not changes_data and not further_databases:
        return MetricResult(None, reason="the suite has one database of this schema")
    return published_result("test_suite", generated, execution, published, should_pass, changes_data)


UNREADABLE = "no accepted query is in the grammar of Spider's evaluator"


def spider_exact(spider: Mapping[str, Any] | None, should_pass: bool) -> MetricResult:
    """Returns 1.0 if all parts and tables of the query are those of an accepted one, whatever the values."""
    if not should_pass:
        return MetricResult(None, reason=NO_SQL_EXPECTED)
    if spider is None:
        return MetricResult(None, reason=UNREADABLE)
    reason = None if spider["readable"] else "there is no query in the grammar of Spider's evaluator"
    return MetricResult(float(spider["exact"]), reason=reason)


def spider_difficulty(spider: Mapping[str, Any] | None) -> str | None:
    """Returns Spider's level of the first accepted query: `easy`, `medium`, `hard` or `extra`."""
    return None if spider is None else str(spider["difficulty"])


_Match = Mapping[str, Any] | None


def _part(spider: _Match, name: str) -> MetricResult:
    if spider is None:
        return MetricResult(None, reason=UNREADABLE)
    same, mine, theirs = spider["parts"][name]
    if not mine and not theirs:
        return MetricResult(None, reason="neither query has it")
    return MetricResult(float(same), details={"generated": mine, "expected": theirs})


def spider_select(spider: _Match) -> MetricResult:
    """Returns 1.0 if both have the same: the selected terms with their aggregates."""
    return _part(spider, "select")


def spider_select_no_agg(spider: _Match) -> MetricResult:
    """Returns 1.0 if both have the same: the selected terms without their aggregates."""
    return _part(spider, "select_no_agg")


def spider_where(spider: _Match) -> MetricResult:
    """Returns 1.0 if both have the same: the conditions of WHERE without their values."""
    return _part(spider, "where")


def spider_where_no_op(spider: _Match) -> MetricResult:
    """Returns 1.0 if both have the same: the terms in the conditions of WHERE."""
    return _part(spider, "where_no_op")


def spider_group_no_having(spider: _Match) -> MetricResult:
    """Returns 1.0 if both have the same: the columns of GROUP BY."""
    return _part(spider, "group_no_having")


def spider_group(spider: _Match) -> MetricResult:
    """Returns 1.0 if both have the same: the columns of GROUP BY in their order, and HAVING."""
    return _part(spider, "group")


def spider_order(spider: _Match) -> MetricResult:
    """Returns 1.0 if both have the same: ORDER BY, and whether there is a LIMIT."""
    return _part(spider, "order")


def spider_and_or(spider: _Match) -> MetricResult:
    """Returns 1.0 if both have the same: which of AND and OR are in WHERE."""
    return _part(spider, "and_or")


def spider_iuen(spider: _Match) -> MetricResult:
    """Returns 1.0 if both have the same: INTERSECT, UNION or EXCEPT, and the query after it."""
    return _part(spider, "iuen")


def spider_keywords(spider: _Match) -> MetricResult:
    """Returns 1.0 if both have the same: the set of keywords."""
    return _part(spider, "keywords")

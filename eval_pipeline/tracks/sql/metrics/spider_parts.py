"""Spider's partial scores: whether a part of the query is that of the accepted query that it matches best."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics.spider_exact import UNREADABLE

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


def _metric(function: Any, words: str) -> Metric:
    told = f"Spider's partial score: both have the same {words}; NULL where neither has any, or as for spider_exact."
    return Metric(function.__name__, function, "boolean", told)


METRICS = (
    _metric(spider_select, "selected terms with their aggregates"),
    _metric(spider_select_no_agg, "selected terms without their aggregates"),
    _metric(spider_where, "conditions of WHERE without their values"),
    _metric(spider_where_no_op, "terms in the conditions of WHERE"),
    _metric(spider_group_no_having, "columns of GROUP BY"),
    _metric(spider_group, "columns of GROUP BY in their order, and HAVING"),
    _metric(spider_order, "ORDER BY, and whether there is a LIMIT"),
    _metric(spider_and_or, "of AND and OR in WHERE"),
    _metric(spider_iuen, "INTERSECT, UNION or EXCEPT, and the query after it"),
    _metric(spider_keywords, "keywords"),
)

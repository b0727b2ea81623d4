"""Spider's exact match and the difficulty of the accepted query (tracks/sql/spider)."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics.tables_read import NO_SQL_EXPECTED

UNREADABLE = "no accepted query is in the grammar of Spider's evaluator"
WHERE_NULL = "NULL where no SQL is expected or no accepted query is in the evaluator's grammar."


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


METRIC = Metric(
    "spider_exact",
    spider_exact,
    "boolean",
    f"Spider's exact match: the parts and tables of an accepted query, whatever the values; {WHERE_NULL}",
)
DIFFICULTY = Metric(
    "spider_difficulty",
    spider_difficulty,
    "label",
    f"Spider's level of the first accepted query: easy, medium, hard or extra; {WHERE_NULL}",
)

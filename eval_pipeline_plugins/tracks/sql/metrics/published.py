"""Code shared by the metrics that other benchmarks define: they are read from the evidence of a turn."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.core.model import MetricResult
from eval_pipeline_plugins.tracks.sql.metrics.tables_read import CHANGES_DATA, NO_SQL, NO_SQL_EXPECTED

Rows = list[tuple[Any, ...]]


def published_result(
    name: str,
    generated: str | None,
    execution: str | None,
    published: Mapping[str, float],
    should_pass: bool,
    changes_data: bool = False,
) -> MetricResult:
    """Returns a score by its name: the best over the accepted queries, 0.0 if there is no result to compare."""
    if not should_pass:
        return MetricResult(None, reason=NO_SQL_EXPECTED)
    if changes_data:
        return MetricResult(None, reason=CHANGES_DATA)
    if generated is None:
        return MetricResult(0.0, reason=NO_SQL)
    if execution == "error":
        return MetricResult(0.0, reason="there are no two results")
    if name not in published:
        return MetricResult(None, reason="not compared")
    return MetricResult(published[name])

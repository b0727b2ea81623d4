"""The usual execution accuracy."""

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics.tables_read import NO_SQL, NO_SQL_EXPECTED


def execution_match(
    generated: str | None, execution: str | None, execution_message: str, should_pass: bool
) -> MetricResult:
    """Returns whether the query has the same result as an accepted one on the suite's own database.

    Args:
        generated: the query; None if there is none.
        execution: verdict of the evidence: `match`, `different`, `error` or `no_data`.
        execution_message: why there is no result to compare.
        should_pass: whether SQL is expected.
    """
    if not should_pass:
        return MetricResult(None, reason=NO_SQL_EXPECTED)
    if generated is None:
        return MetricResult(0.0, reason=NO_SQL)
    if execution is None or execution == "no_data":
        return MetricResult(None, reason=execution_message or "not compared")
    return MetricResult(float(execution == "match"), reason=execution_message or None)


METRIC = Metric(
    "execution_match",
    execution_match,
    "boolean",
    "Same result as an accepted query on the suite's own database; false without SQL; NULL where no SQL is expected or "
    "the suite ships no data.",
)

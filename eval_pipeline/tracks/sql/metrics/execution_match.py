"""The usual execution accuracy."""

from collections.abc import Sequence

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics.tables_read import NO_SQL, NO_SQL_EXPECTED


def execution_match(
    generated: str | None,
    execution: str | None,
    execution_message: str,
    should_pass: bool,
    may_overlook: Sequence[str],
    needed_on_data: Sequence[Sequence[str]] | None,
) -> MetricResult:
    """Returns whether the query has the same result as an accepted one on the suite's own database, by the contract.

    Args:
        generated: the query; None if there is none.
        execution: verdict of the evidence: `match`, `different`, `error` or `no_data`.
        execution_message: why there is no result to compare, or in what it differs.
        should_pass: whether SQL is expected.
        may_overlook: what the contract overlooks in this turn.
        needed_on_data: each of the smallest sets that have to be overlooked for the results to be equal.
    """
    if not should_pass:
        return MetricResult(None, reason=NO_SQL_EXPECTED)
    if generated is None:
        return MetricResult(0.0, reason=NO_SQL)
    if execution is None or execution == "no_data":
        return MetricResult(None, reason=execution_message or "not compared")
    right = any({*one} <= {*may_overlook} for one in needed_on_data or ())
    return MetricResult(float(right), reason=execution_message or None)


METRIC = Metric(
    "execution_match",
    execution_match,
    "boolean",
    "Same result by the contract as an accepted query on the suite's own database; false without SQL; NULL where no "
    "SQL is expected or the suite ships no data.",
)

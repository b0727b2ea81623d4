"""Whether no database that fits the suite's data refutes the query."""

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics.tables_read import NO_SQL_EXPECTED


def robust_match(
    should_pass: bool, execution_match: bool | None, strict_match: bool | None, fits_data: bool | None
) -> MetricResult:
    """Returns whether the results are the same on the suite's data and on generated databases that fit it.

    Args:
        should_pass: whether SQL is expected.
        execution_match: on the suite's data; None without data, where `strict_match` decides.
        strict_match: on every generated database.
        fits_data: whether a generated database on which they differ fits the statistics of the data; None if they do
            not differ on one.
    """
    if not should_pass:
        return MetricResult(None, reason=NO_SQL_EXPECTED)
    return MetricResult(float(strict_match or (bool(execution_match) and fits_data is False)))


METRIC = Metric(
    "robust_match",
    robust_match,
    "boolean",
    "Same result on the suite's own database and on every generated one that fits the statistics of the data; "
    "`strict_match` without data; NULL where no SQL is expected.",
)

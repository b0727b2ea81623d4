"""Whether no database that fits the suite's data refutes the query."""

from collections.abc import Sequence

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics.outcome_correct import is_right
from eval_pipeline.tracks.sql.metrics.tables_read import NO_SQL_EXPECTED


def robust_match(
    should_pass: bool,
    may_overlook: Sequence[str],
    needed_on_data: Sequence[Sequence[str]] | None,
    needed: Sequence[Sequence[str]],
    equivalence: str | None,
) -> MetricResult:
    """Returns whether results are the same by the contract, on the data and on generated databases that fit them."""
    if not should_pass:
        return MetricResult(None, reason=NO_SQL_EXPECTED)
    return MetricResult(float(is_right("robust", may_overlook, needed_on_data, needed, equivalence)))


METRIC = Metric(
    "robust_match",
    robust_match,
    "boolean",
    "Same result by the contract on the suite's own database and on every generated one that fits the statistics of "
    "the data; NULL where no SQL is expected.",
)

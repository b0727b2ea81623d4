"""Whether no database at all, generated ones included, refutes the query."""

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics.tables_read import NO_SQL_EXPECTED
from eval_pipeline.tracks.sql.words import SAME

NO_DATA = "by generated databases alone"


def strict_match(should_pass: bool, execution_match: bool | None, equivalence: str | None) -> MetricResult:
    """Returns whether the results are the same on the suite's data and differ on no generated database.

    If the suite has no data, the queries must mean the same by the evidence.
    """
    if not should_pass:
        return MetricResult(None, reason=NO_SQL_EXPECTED)
    if execution_match is None:
        return MetricResult(float(equivalence in SAME), reason=NO_DATA)
    return MetricResult(float(execution_match and equivalence != "different"))


METRIC = Metric(
    "strict_match",
    strict_match,
    "boolean",
    "Same result on the suite's own database and on every generated one, with empty tables and NULLs among them; NULL "
    "where no SQL is expected.",
)

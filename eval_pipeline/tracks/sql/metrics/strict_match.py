"""Whether no database at all, generated ones included, refutes the query."""

from collections.abc import Collection, Sequence

from eval_pipeline.core.model import MetricResult
from eval_pipeline.table_comparison.contracts import PRESETS
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics.tables_read import NO_SQL_EXPECTED
from eval_pipeline.tracks.sql.words import SAME

NO_DATA = "by generated databases alone"


def is_strictly_right(needed_on_data: Sequence[Collection[str]] | None, equivalence: str | None) -> bool:
    """Returns whether results are the same under `exact` on the data, and differ on no generated database.

    If the suite has no data, the queries must mean the same by the evidence.
    """
    if needed_on_data is None:
        return equivalence in SAME
    return equivalence != "different" and any({*one} <= PRESETS["exact"] for one in needed_on_data)


def strict_match(
    should_pass: bool, generated: str | None, needed_on_data: Sequence[Sequence[str]] | None, equivalence: str | None
) -> MetricResult:
    """Returns whether a query is right if nothing is overlooked."""
    if not should_pass:
        return MetricResult(None, reason=NO_SQL_EXPECTED)
    right = generated is not None and is_strictly_right(needed_on_data, equivalence)
    return MetricResult(float(right), reason=NO_DATA if needed_on_data is None else None)


METRIC = Metric(
    "strict_match",
    strict_match,
    "boolean",
    "Exactly the same result on the suite's own database and on every generated one, with empty tables and NULLs among "
    "them, whatever the contract; NULL where no SQL is expected.",
)

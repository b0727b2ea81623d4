"""The metrics of the track, one file each, and the functions behind them that people call themselves.

Add one with a file and a line in `METRICS`.
"""

from eval_pipeline.tracks import recovery
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics import (
    confidence,
    cpu_ms,
    execution_match,
    failure_mode,
    judged,
    outcome_correct,
    r_ves,
    safety,
    soft_f1,
    sql_equivalence,
    tables_read,
    validation,
)
from eval_pipeline.tracks.sql.metrics.calibration import confidence_calibration
from eval_pipeline.tracks.sql.metrics.judged import query_correctness
from eval_pipeline.tracks.sql.metrics.safety import safety_validation
from eval_pipeline.tracks.sql.metrics.tables_read import table_accuracy
from eval_pipeline.tracks.sql.metrics.validation import validation_accuracy

__all__ = [
    "METRICS",
    "confidence_calibration",
    "query_correctness",
    "safety_validation",
    "table_accuracy",
    "validation_accuracy",
]

METRICS: tuple[Metric, ...] = (
    execution_match.METRIC,
    sql_equivalence.METRIC,
    sql_equivalence.VERDICT,
    sql_equivalence.RUNG,
    outcome_correct.METRIC,
    judged.METRIC,
    soft_f1.METRIC,
    tables_read.METRIC,
    safety.METRIC,
    safety.VERDICT,
    validation.METRIC,
    validation.VERDICT,
    validation.CATEGORY,
    r_ves.METRIC,
    cpu_ms.METRIC,
    confidence.METRIC,
    failure_mode.METRIC,
    *recovery.METRICS,
)
"""In an order in which a metric may take those before it."""

"""The metrics of the track, one file each, and the functions behind them, which can also be called directly.

To add a metric, add its file and a line in `METRICS`.
"""

from eval_pipeline.tracks import recovery
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics import (
    bird_ex,
    bird_soft_f1,
    confidence,
    cpu_ms,
    defog_subset,
    execution_match,
    failure_mode,
    judged,
    outcome_correct,
    outcome_reason,
    r_ves,
    relaxations,
    robust_match,
    safety,
    soft_f1,
    spider_exact,
    spider_execution,
    spider_parts,
    sql_equivalence,
    strict_match,
    tables_read,
    test_suite,
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
    strict_match.METRIC,
    robust_match.METRIC,
    outcome_correct.METRIC,
    relaxations.METRIC,
    relaxations.INSISTED,
    relaxations.WRONG_IN,
    outcome_reason.METRIC,
    judged.METRIC,
    soft_f1.METRIC,
    tables_read.METRIC,
    safety.METRIC,
    safety.VERDICT,
    validation.METRIC,
    validation.VERDICT,
    validation.CATEGORY,
    r_ves.METRIC,
    bird_ex.METRIC,
    bird_soft_f1.METRIC,
    spider_execution.METRIC,
    test_suite.METRIC,
    spider_exact.METRIC,
    spider_exact.DIFFICULTY,
    *spider_parts.METRICS,
    defog_subset.METRIC,
    cpu_ms.METRIC,
    confidence.METRIC,
    failure_mode.METRIC,
    *recovery.METRICS,
)
"""In the order of computation: a metric can use the values of those before it."""

"""Evaluations of a suite side by side: model against model, and night after night."""

from eval_pipeline.analysis.comparisons.making import (
    VERSION,
    compare_models,
    comparisons_current,
    keep_comparisons,
    make_trends,
    newest_trends,
    publish_comparisons,
)
from eval_pipeline.analysis.comparisons.verdicts import check_no_drift, check_no_loss

__all__ = [
    "VERSION",
    "check_no_drift",
    "check_no_loss",
    "compare_models",
    "comparisons_current",
    "keep_comparisons",
    "make_trends",
    "newest_trends",
    "publish_comparisons",
]

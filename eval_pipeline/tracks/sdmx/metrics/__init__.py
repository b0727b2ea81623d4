"""The metrics of the track, one file each. To add one, add its file and a line in `METRICS`."""

from eval_pipeline.tracks import recovery
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics import (
    dataset_precision,
    dataset_recall,
    exact_selection,
    failure_mode,
    false_negatives,
    false_positives,
    macro_f1,
    macro_f1_if_valid,
    macro_precision,
    macro_precision_if_valid,
    macro_recall,
    macro_recall_if_valid,
    retrieval_misses,
    retrieval_recall,
    retrieval_recall_from_target,
    selection_misses,
    true_positives,
    valid_selection,
)

METRICS: tuple[Metric, ...] = (
    true_positives.METRIC,
    false_positives.METRIC,
    false_negatives.METRIC,
    exact_selection.METRIC,
    macro_precision.METRIC,
    macro_recall.METRIC,
    macro_f1.METRIC,
    valid_selection.METRIC,
    macro_precision_if_valid.METRIC,
    macro_recall_if_valid.METRIC,
    macro_f1_if_valid.METRIC,
    dataset_precision.METRIC,
    dataset_recall.METRIC,
    retrieval_recall.METRIC,
    retrieval_recall_from_target.METRIC,
    retrieval_misses.METRIC,
    selection_misses.METRIC,
    failure_mode.METRIC,
    *recovery.METRICS,
)
"""In the order of computation: a metric can use the values of those before it."""

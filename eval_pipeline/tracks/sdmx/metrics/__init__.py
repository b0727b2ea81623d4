"""The metrics of the track, one file each. Add one with a file and a line in `METRICS`."""

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
    macro_precision,
    macro_recall,
    retrieval_misses,
    retrieval_recall,
    retrieval_recall_from_target,
    selection_misses,
    true_positives,
)

METRICS: tuple[Metric, ...] = (
    true_positives.METRIC,
    false_positives.METRIC,
    false_negatives.METRIC,
    exact_selection.METRIC,
    macro_precision.METRIC,
    macro_recall.METRIC,
    macro_f1.METRIC,
    dataset_precision.METRIC,
    dataset_recall.METRIC,
    retrieval_recall.METRIC,
    retrieval_recall_from_target.METRIC,
    retrieval_misses.METRIC,
    selection_misses.METRIC,
    failure_mode.METRIC,
    *recovery.METRICS,
)
"""In an order in which a metric may take those before it."""

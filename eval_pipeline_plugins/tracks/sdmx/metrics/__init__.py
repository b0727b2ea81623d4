"""The metrics of the track. To add one, add its function to the module of its topic, and a line in `METRICS`."""

from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.scored import recovery

METRICS: tuple[Metric, ...] = (
    Metric(
        "true_positives",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.counts:true_positives"),
        "count",
        "Terms in the target and selected, from 0; NULL: not scored.",
    ),
    Metric(
        "false_positives",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.counts:false_positives"),
        "count",
        "Terms selected and not in the target, from 0; NULL: not scored.",
    ),
    Metric(
        "false_negatives",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.counts:false_negatives"),
        "count",
        "Terms in the target and not selected, from 0; NULL: not scored.",
    ),
    Metric(
        "exact_selection",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.counts:exact_selection"),
        "boolean",
        "Nothing is missing and nothing is extra; the primary metric; false without an answer; NULL: not scored.",
    ),
    Metric(
        "macro_precision",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.macro:macro_precision"),
        "score",
        "Mean over (data set, dimension) pairs of target or selection of tp / (tp + fp), 0..1; 1 where both are "
        "empty; 0 without an answer; NULL: not scored.",
    ),
    Metric(
        "macro_recall",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.macro:macro_recall"),
        "score",
        "Mean over the target's (data set, dimension) pairs of tp / (tp + fn), 0..1; 1 where target and selection "
        "are empty; NULL where only the target is, or where nothing answers an empty one.",
    ),
    Metric(
        "macro_f1",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.macro:macro_f1"),
        "score",
        "Mean over (data set, dimension) pairs of target or selection of 2 tp / (2 tp + fp + fn), 0..1; 1 where both "
        "are empty; 0 without an answer; NULL: not scored.",
    ),
    Metric(
        "valid_selection",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.counts:valid_selection"),
        "boolean",
        "A selection was read and the catalogue has all data sets, dimensions and codes that it names; NULL: not "
        "scored.",
    ),
    Metric(
        "macro_precision_if_valid",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.macro:macro_precision_if_valid"),
        "score",
        "As macro_precision, but a selection with anything unknown selects nothing, 0..1; NULL as there.",
    ),
    Metric(
        "macro_recall_if_valid",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.macro:macro_recall_if_valid"),
        "score",
        "As macro_recall, but a selection with anything unknown selects nothing, 0..1; NULL as there.",
    ),
    Metric(
        "macro_f1_if_valid",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.macro:macro_f1_if_valid"),
        "score",
        "As macro_f1, but a selection with anything unknown selects nothing, 0..1; NULL as there.",
    ),
    Metric(
        "indicator_recall",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.parts:indicator_recall"),
        "score",
        "Mean of tp / (tp + fn) over the target's pairs in indicator_dimensions, 0..1; NULL where the target has none.",
    ),
    Metric(
        "other_recall",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.parts:other_recall"),
        "score",
        "Mean of tp / (tp + fn) over the target's pairs in other dimensions, 0..1; NULL where the target has none.",
    ),
    Metric(
        "soft_precision",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.parts:soft_precision"),
        "score",
        "Mean of tp / (tp + fp) over the selected pairs, without dimensions beyond the target in its data sets, "
        "0..1; NULL where nothing is left.",
    ),
    Metric(
        "hard_precision",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.parts:hard_precision"),
        "score",
        "Selected pairs without a false positive / selected pairs, 0..1; NULL where nothing was selected.",
    ),
    Metric(
        "exact_without_totals",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.counts:exact_without_totals"),
        "boolean",
        "As exact_selection, but naming a total such as _T and leaving the dimension out are the same; NULL: not "
        "scored.",
    ),
    Metric(
        "macro_precision_without_totals",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.macro:macro_precision_without_totals"),
        "score",
        "As macro_precision, but naming a total such as _T and leaving it out are the same, 0..1; NULL: not scored.",
    ),
    Metric(
        "macro_recall_without_totals",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.macro:macro_recall_without_totals"),
        "score",
        "As macro_recall, but naming a total such as _T and leaving it out are the same, 0..1; NULL as there.",
    ),
    Metric(
        "macro_f1_without_totals",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.macro:macro_f1_without_totals"),
        "score",
        "As macro_f1, but naming a total such as _T and leaving it out are the same, 0..1; NULL: not scored.",
    ),
    Metric(
        "dataset_precision",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.parts:dataset_precision"),
        "score",
        "Selected data sets that the target has / selected ones, 0..1; 1 where both are empty; 0 where nothing was "
        "selected; NULL: not scored.",
    ),
    Metric(
        "dataset_recall",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.parts:dataset_recall"),
        "score",
        "Data sets of the target that were selected / those of the target, 0..1; 1 where target and selection are "
        "empty; NULL where only the target is, or where nothing answers an empty one.",
    ),
    Metric(
        "retrieval_recall",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.counts:retrieval_recall"),
        "score",
        "Terms of the target that were offered as candidates / all of the target that the structures hold, 0..1; "
        "NULL where there are none.",
    ),
    Metric(
        "retrieval_recall_from_target",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.counts:retrieval_recall_from_target"),
        "score",
        "As retrieval_recall, over target terms that the structures lack and the importer added, 0..1; NULL without "
        "any.",
    ),
    Metric(
        "retrieval_misses",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.counts:retrieval_misses"),
        "count",
        "False negatives that were not offered as candidates, from 0; NULL: not scored.",
    ),
    Metric(
        "selection_misses",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.counts:selection_misses"),
        "count",
        "False negatives that were offered and not selected, from 0; NULL: not scored.",
    ),
    Metric(
        "failure_mode",
        Later("eval_pipeline_plugins.tracks.sdmx.metrics.failure_mode:failure_mode"),
        "label",
        "Why the selection is wrong, first that applies; NULL where it is right.",
    ),
    *recovery.METRICS,
)
"""In the order of computation: a metric can use the values of those before it."""

"""The metrics of the track. A suite selects some of them, and sets their parameters, in `suite.yaml`."""

from collections.abc import Collection, Mapping

from eval_pipeline.tracks import recovery
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.text.metrics import failure_mode, graded, judged, loose, verdict, whole

SELECTABLE: Mapping[str, Metric] = {
    "exact": whole.EXACT,
    "number": whole.NUMBER,
    "choice": whole.CHOICE,
    "contains": loose.CONTAINS,
    "regex": loose.REGEX,
    "set_f1": graded.SET_F1,
    "json_fields": graded.JSON_FIELDS,
    "rouge_l": graded.ROUGE_L,
    "judge": judged.METRIC,
}
"""The metrics that a suite selects, by their names in `suite.yaml`."""
METRICS: tuple[Metric, ...] = (
    *SELECTABLE.values(),
    verdict.SCORE,
    verdict.CORRECT,
    failure_mode.METRIC,
    *recovery.METRICS,
)
"""In the order of computation: a metric can use the values of those before it."""


def selected_metrics(selected: Collection[str]) -> tuple[Metric, ...]:
    """Returns the metrics of a suite that selects these by their names in `suite.yaml`, in the order of `METRICS`."""
    left_out = {metric.name for name, metric in SELECTABLE.items() if name not in selected}
    return tuple(metric for metric in METRICS if metric.name not in left_out)

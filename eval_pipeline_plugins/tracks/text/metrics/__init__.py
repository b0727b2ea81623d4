"""The metrics of the track. A suite selects some of them, and sets their parameters, in `suite.yaml`."""

from collections.abc import Collection, Mapping

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.scored import recovery
from eval_pipeline_plugins.tracks.text.metrics import failure_mode, graded, judged, loose, other_tools, verdict, whole

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
    *other_tools.METRICS,
    *recovery.METRICS,
)
"""In the order of computation: a metric can use the values of those before it."""


def selected_metrics(selected: Collection[str], form: str) -> tuple[Metric, ...]:
    """Returns the metrics of a suite that selects these by their names in `suite.yaml`, in the order of `METRICS`.

    Those of other tools are only for the forms of answers that these know.
    """
    left_out = {metric.name for name, metric in SELECTABLE.items() if name not in selected}
    if form not in other_tools.FORMS:
        left_out |= {metric.name for metric in other_tools.METRICS}
    return tuple(metric for metric in METRICS if metric.name not in left_out)

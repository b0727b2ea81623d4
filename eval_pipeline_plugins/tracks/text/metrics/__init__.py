"""The metrics of the track. A suite selects some of them, and sets their parameters, in `suite.yaml`."""

from collections.abc import Collection, Mapping

from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.scored import recovery

SELECTABLE: Mapping[str, Metric] = {
    "exact": Metric(
        "exact_match",
        Later("eval_pipeline_plugins.tracks.text.metrics.whole:exact_match"),
        "boolean",
        "The answer is an expected one and nothing else; NULL where the suite does not have the metric `exact`.",
    ),
    "number": Metric(
        "number_match",
        Later("eval_pipeline_plugins.tracks.text.metrics.whole:number_match"),
        "boolean",
        "The number is within the tolerance; NULL where the suite does not have the metric `number`.",
    ),
    "choice": Metric(
        "choice_match",
        Later("eval_pipeline_plugins.tracks.text.metrics.whole:choice_match"),
        "boolean",
        "The answer gives one label, and it is right; NULL where the suite does not have the metric `choice`.",
    ),
    "contains": Metric(
        "contains_match",
        Later("eval_pipeline_plugins.tracks.text.metrics.loose:contains_match"),
        "boolean",
        "The answer section contains an expected text, not denied, quoted or one of several; "
        "NULL where the suite does not have the metric `contains`.",
    ),
    "regex": Metric(
        "regex_match",
        Later("eval_pipeline_plugins.tracks.text.metrics.loose:regex_match"),
        "boolean",
        "The suite's pattern finds the answer in the answer section, not denied, quoted or one of several; "
        "NULL where the suite does not have the metric `regex`.",
    ),
    "set_f1": Metric(
        "set_f1",
        Later("eval_pipeline_plugins.tracks.text.metrics.graded:set_f1"),
        "score",
        "F1 of the items of the answer and the expected ones, 0..1; NULL where the suite does not have the metric.",
    ),
    "json_fields": Metric(
        "json_fields",
        Later("eval_pipeline_plugins.tracks.text.metrics.graded:json_fields"),
        "score",
        "Equal fields / fields of answer and expected answer, 0..1; NULL where the suite does not have the metric.",
    ),
    "rouge_l": Metric(
        "rouge_l",
        Later("eval_pipeline_plugins.tracks.text.metrics.graded:rouge_l"),
        "score",
        "ROUGE-L F-measure against the expected text, 0..1; NULL where the suite does not have the metric.",
    ),
    "judge": Metric(
        "judge_score",
        Later("eval_pipeline_plugins.tracks.text.metrics.judged:judge_score"),
        "score",
        "The judge's grade by the suite's rubric: 1 fulfilled, 0.5 partly, 0 not or no answer; NULL where the suite "
        "does not have the metric `judge`, no judge is configured, or it failed.",
    ),
}
"""The metrics that a suite selects, by their names in `suite.yaml`."""
_APART = "What other tools would have read"
_NULL = "NULL where answers are neither numbers nor labels."
_OF_OTHER_TOOLS = (
    Metric(
        "right_by_lm_eval_strict",
        Later("eval_pipeline_plugins.tracks.text.metrics.other_tools:right_by_lm_eval_strict"),
        "boolean",
        "The number after `####`, as lm-eval's strict filter for GSM8K reads it, is right; "
        "NULL where answers are no numbers.",
        apart=_APART,
    ),
    Metric(
        "right_by_lm_eval_flexible",
        Later("eval_pipeline_plugins.tracks.text.metrics.other_tools:right_by_lm_eval_flexible"),
        "boolean",
        "The last number, as lm-eval's flexible filter for GSM8K reads it, is right; "
        "NULL where answers are no numbers.",
        apart=_APART,
    ),
    Metric(
        "right_by_inspect",
        Later("eval_pipeline_plugins.tracks.text.metrics.other_tools:right_by_inspect"),
        "boolean",
        f"The last number is right, or the response ends with the right label, as Inspect's `match` reads it; {_NULL}",
        apart=_APART,
    ),
    Metric(
        "right_by_promptfoo",
        Later("eval_pipeline_plugins.tracks.text.metrics.other_tools:right_by_promptfoo"),
        "boolean",
        f"The right answer occurs anywhere, as promptfoo's `icontains` reads it; {_NULL}",
        apart=_APART,
    ),
    Metric(
        "read_otherwise",
        Later("eval_pipeline_plugins.tracks.text.metrics.other_tools:read_otherwise"),
        "boolean",
        "One of these, but for the strict filter, has another verdict than `answer_correct`; NULL where that is NULL, "
        "or answers are neither numbers nor labels.",
        apart=_APART,
    ),
)
FORMS_OF_OTHER_TOOLS = frozenset({"label", "number"})
"""Forms of answers for which other tools have a rule."""
METRICS: tuple[Metric, ...] = (
    *SELECTABLE.values(),
    Metric(
        "answer_score",
        Later("eval_pipeline_plugins.tracks.text.metrics.verdict:answer_score"),
        "score",
        "The metric that the suite's `correct` names, 0..1; NULL where it has none.",
    ),
    Metric(
        "answer_correct",
        Later("eval_pipeline_plugins.tracks.text.metrics.verdict:answer_correct"),
        "boolean",
        "The metric that the suite's `correct` names is 1, or reaches its threshold; NULL where it has no value.",
    ),
    Metric(
        "failure_mode",
        Later("eval_pipeline_plugins.tracks.text.metrics.failure_mode:failure_mode"),
        "label",
        "Why the answer is wrong, first that applies; NULL where it is correct, or not judged.",
    ),
    *_OF_OTHER_TOOLS,
    *recovery.METRICS,
)
"""In the order of computation: a metric can use the values of those before it."""


def selected_metrics(selected: Collection[str], form: str) -> tuple[Metric, ...]:
    """Returns the metrics of a suite that selects these by their names in `suite.yaml`, in the order of `METRICS`.

    Those of other tools are only for the forms of answers that these know.
    """
    left_out = {metric.name for name, metric in SELECTABLE.items() if name not in selected}
    if form not in FORMS_OF_OTHER_TOOLS:
        left_out |= {metric.name for metric in _OF_OTHER_TOOLS}
    return tuple(metric for metric in METRICS if metric.name not in left_out)

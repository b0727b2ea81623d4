"""The metrics of the track. To add one, add its function to the module of its topic, and a line in `METRICS`."""

from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.scored import recovery

FROM_WORDS = "Estimated from words, without running anything; in no other figure"
"""Title of the table of the scores from words."""
NO_CODE = "the prediction is an answer without code"
"""Why metrics of code have no value."""
_UNSURE = "NULL for a recorded answer without code, and where the question cannot be read with certainty."
_NULL = "0 where it gives no result; NULL without reference code or variants, and for a recorded answer without code."
_FORMULA = (
    "0.25 correctness + 0.20 quality + 0.15 performance + 0.15 understanding + 0.15 coverage + 0.10 recovery, 0..1; "
    "renormalised over the scores that are not NULL, recovery 1 where the first attempt ran"
)
METRICS: tuple[Metric, ...] = (
    Metric(
        "correctness_score",
        Later("eval_pipeline_plugins.tracks.pandas_code.metrics.correctness:correctness_score"),
        "score",
        "1 where the result is the expected one, else F1 of the matched cells, at most 0.99, 0..1; 0 where the code "
        "does not run; closed answers and tests: 1 or 0; NULL where the reference code gives no result.",
    ),
    Metric(
        "result_match",
        Later("eval_pipeline_plugins.tracks.pandas_code.metrics.correctness:result_match"),
        "boolean",
        "The primary metric: correctness_score is 1; NULL: not scored.",
    ),
    Metric(
        "relaxations",
        Later("eval_pipeline_plugins.tracks.pandas_code.metrics.form:relaxations"),
        "label",
        "What has to be overlooked for the result to be the expected one, e.g. `column_names, shape`; `none`: it is; "
        "several ways are separated by ` | `; NULL: it differs in meaning, or no result is compared.",
    ),
    Metric(
        "insisted",
        Later("eval_pipeline_plugins.tracks.pandas_code.metrics.form:insisted"),
        "label",
        "What the question insists on, so that `expert` does not overlook it: `row_order`, `rounding`, `duplicates`; "
        "`none`: nothing; NULL: closed answers or tests decide.",
    ),
    Metric(
        "wrong_in",
        Later("eval_pipeline_plugins.tracks.pandas_code.metrics.form:wrong_in"),
        "label",
        "`form`: right if what `relaxations` names were overlooked; `meaning`: any other wrong answer; NULL: right.",
    ),
    Metric(
        "robust_correct",
        Later("eval_pipeline_plugins.tracks.pandas_code.metrics.robust_correct:robust_correct"),
        "boolean",
        "The result is the expected one on the given tables and on all variants of them; of a function that tests "
        "check, on other inputs too; NULL without code, without reference code, and where no variant determines a "
        "result.",
    ),
    Metric(
        "performance_score",
        Later("eval_pipeline_plugins.tracks.pandas_code.metrics.performance:performance_score"),
        "score",
        "0.7 time + 0.3 memory beside the reference code, 0..1; 0 where it does not run; NULL without reference code.",
    ),
    Metric(
        "quality_score",
        Later("eval_pipeline_plugins.tracks.pandas_code.metrics.static:_quality"),
        "score",
        "1 − penalties for findings of ruff, row-wise work and complexity, 0..1; 0 where the code does not parse; "
        "NULL for a recorded answer without code.",
    ),
    Metric(
        "understanding_score_from_words",
        Later("eval_pipeline_plugins.tracks.pandas_code.metrics.static:_understanding"),
        "score",
        "Named columns used (0.4), phrases such as `top 5` (0.3) and statistics (0.3) honoured, 0..1; 0 where the code "
        f"does not parse; {_UNSURE}",
        apart=FROM_WORDS,
    ),
    Metric(
        "coverage_score_from_words",
        Later("eval_pipeline_plugins.tracks.pandas_code.metrics.static:_coverage"),
        "score",
        "0.3 filters + 0.3 groups + 0.2 sorting + 0.2 joins that are asked for and there, 0..1; 0 where the code does "
        f"not parse; {_UNSURE}",
        apart=FROM_WORDS,
    ),
    Metric(
        "understanding_score",
        Later("eval_pipeline_plugins.tracks.pandas_code.metrics.met:understanding_score"),
        "score",
        f"Share of the reference code's requirements that the code meets, by what it gives on variants, 0..1; {_NULL}",
    ),
    Metric(
        "coverage_score",
        Later("eval_pipeline_plugins.tracks.pandas_code.metrics.met:coverage_score"),
        "score",
        f"Share of the reference code's requirements that are there, met or altered, 0..1; {_NULL}",
    ),
    Metric(
        "failure_mode",
        Later("eval_pipeline_plugins.tracks.pandas_code.metrics.failure_mode:failure_mode"),
        "label",
        "Why the result is not the expected one, with what shows it as the reason; NULL where it is the expected one, "
        "and where nothing shows why it is not.",
    ),
    *recovery.METRICS,
    Metric(
        "overall_score",
        Later("eval_pipeline_plugins.tracks.pandas_code.metrics.overall:overall_score"),
        "score",
        f"{_FORMULA}; in a wrong answer quality, performance and recovery are 0, correctness times coverage; "
        "NULL: not scored.",
    ),
    Metric(
        "overall_score_from_words",
        Later("eval_pipeline_plugins.tracks.pandas_code.metrics.overall:overall_score_from_words"),
        "score",
        f"{_FORMULA}; understanding and coverage are those from words, wrong answers too; NULL: not scored.",
        apart=FROM_WORDS,
    ),
)
"""In the order of computation: a metric can use the values of those before it."""

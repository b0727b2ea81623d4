"""The metrics of the track, and the functions behind them, which can also be called directly.

To add a metric, add its function to the module of its topic, and a line in `METRICS`.
"""

from functools import partial

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.scored import recovery
from eval_pipeline_plugins.tracks.sql.metrics import (
    failure_mode,
    judged,
    safety,
    sql_equivalence,
    tables_read,
    validation,
)
from eval_pipeline_plugins.tracks.sql.metrics.bird import r_ves
from eval_pipeline_plugins.tracks.sql.metrics.calibration import confidence_calibration
from eval_pipeline_plugins.tracks.sql.metrics.judged import query_correctness
from eval_pipeline_plugins.tracks.sql.metrics.published import WHERE_NULL, published_result
from eval_pipeline_plugins.tracks.sql.metrics.results import confidence, cpu_ms, execution_match, soft_f1
from eval_pipeline_plugins.tracks.sql.metrics.safety import safety_validation
from eval_pipeline_plugins.tracks.sql.metrics.spider import (
    NOT_IN_GRAMMAR,
    PARTS,
    spider_difficulty,
    spider_exact,
    test_suite,
)
from eval_pipeline_plugins.tracks.sql.metrics.tables_read import table_accuracy
from eval_pipeline_plugins.tracks.sql.metrics.validation import validation_accuracy
from eval_pipeline_plugins.tracks.sql.metrics.verdict import (
    insisted,
    outcome_correct,
    outcome_reason,
    relaxations,
    robust_match,
    strict_match,
    wrong_in,
)

__all__ = [
    "METRICS",
    "confidence_calibration",
    "query_correctness",
    "safety_validation",
    "table_accuracy",
    "validation_accuracy",
]

METRICS: tuple[Metric, ...] = (
    Metric(
        "execution_match",
        execution_match,
        "boolean",
        "Same result by the contract as an accepted query on the suite's own database; false without SQL; NULL where "
        "no SQL is expected or the suite ships no data.",
    ),
    sql_equivalence.METRIC,
    sql_equivalence.VERDICT,
    sql_equivalence.RUNG,
    Metric(
        "strict_match",
        strict_match,
        "boolean",
        "Exactly the same result on the suite's own database and on every generated one, with empty tables and NULLs "
        "among them, whatever the contract; NULL where no SQL is expected.",
    ),
    Metric(
        "robust_match",
        robust_match,
        "boolean",
        "Same result by the contract on the suite's own database and on every generated one that fits the statistics "
        "of the data; NULL where no SQL is expected.",
    ),
    Metric(
        "outcome_correct",
        outcome_correct,
        "boolean",
        "The primary metric: `execution_match`, `robust_match` or `strict_match`, as the suite's option `headline` "
        "says; where a refusal is right, declined or blocked by the validator; NULL: not scored.",
    ),
    Metric(
        "relaxations",
        relaxations,
        "label",
        "What has to be overlooked for the answer to be right, e.g. `duplicates, extra_columns`; `none`: right as it "
        "is; several ways are separated by ` | `; NULL: it differs in meaning, or no SQL is expected.",
    ),
    Metric(
        "insisted",
        insisted,
        "label",
        "What the question insists on, so that `expert` does not overlook it: `row_order`, `rounding`, `duplicates`, "
        "`extra_columns`; `none`: nothing; NULL: no SQL is expected.",
    ),
    Metric(
        "wrong_in",
        wrong_in,
        "label",
        "`form`: right if what `relaxations` names were overlooked; `meaning`: any other wrong outcome; NULL where "
        "it is right.",
    ),
    Metric(
        "outcome_reason",
        outcome_reason,
        "label",
        "What decided `correct`: `declined`, `blocked`, `not_refused`, `no_sql`, `does_not_run`, "
        "`different_on_data`, `different_in_form`, `refuted_on_fitting_database`, `overlooked`, "
        "`refuted_on_unusual_database`, `undecided_without_data`, `not_refuted`.",
    ),
    judged.METRIC,
    Metric(
        "soft_f1",
        soft_f1,
        "score",
        "F1 over the cells of the result, rows matched best, 0..1; 0 where it does not run; NULL as execution_match.",
    ),
    tables_read.METRIC,
    safety.METRIC,
    safety.VERDICT,
    validation.METRIC,
    validation.VERDICT,
    validation.CATEGORY,
    Metric(
        "r_ves",
        r_ves,
        "count",
        "Square root of BIRD's reward (1.25 at half the expected query's time or less, 1, 0.75, 0.5, 0.25), "
        "0..1.118; 0 where the result is wrong; NULL as execution_match.",
    ),
    Metric(
        "bird_ex",
        partial(published_result, "bird_ex"),
        "boolean",
        f"BIRD's EX: the same set of rows as an accepted query, without regard to order and repetition; {WHERE_NULL}",
    ),
    Metric(
        "bird_soft_f1",
        partial(published_result, "bird_soft_f1"),
        "score",
        f"Soft F1 of BIRD's mini-dev: over cells, rows compared by position, repeated ones removed, 0..1; {WHERE_NULL}",
    ),
    Metric(
        "spider_execution",
        partial(published_result, "spider_execution"),
        "boolean",
        "Spider's evaluator on the given database, DISTINCT kept: equal bags of rows (lists if the accepted query "
        f"has ORDER BY) under some order of columns; {WHERE_NULL}",
    ),
    Metric(
        "test_suite",
        test_suite,
        "boolean",
        "Test-suite accuracy: spider_execution on every database that the suite has for the schema; 0 without SQL or "
        "where it does not run; NULL where no SQL is expected or there is one database only.",
    ),
    Metric(
        "spider_exact",
        spider_exact,
        "boolean",
        f"Spider's exact match: the parts and tables of an accepted query, whatever the values; {NOT_IN_GRAMMAR}",
    ),
    Metric(
        "spider_difficulty",
        spider_difficulty,
        "label",
        f"Spider's level of the first accepted query: easy, medium, hard or extra; {NOT_IN_GRAMMAR}",
    ),
    *PARTS,
    Metric(
        "defog_subset",
        partial(published_result, "defog_subset"),
        "boolean",
        "defog's correctness: the result has the columns of an accepted query's result, and may have more; "
        f"{WHERE_NULL}",
    ),
    Metric(
        "cpu_ms",
        cpu_ms,
        "count",
        "Milliseconds of CPU time of the query, least of five runs in turns with the expected one; NULL where it is "
        "not right.",
    ),
    Metric("confidence", confidence, "label", "`high`, `medium` or `low`; NULL: the model did not say."),
    failure_mode.METRIC,
    *recovery.METRICS,
)
"""In the order of computation: a metric can use the values of those before it."""

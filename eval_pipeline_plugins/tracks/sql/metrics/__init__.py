"""The metrics of the track. To add one, add its function to the module of its topic, and a line in `METRICS`."""

from functools import partial

from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.scored import recovery

_NULL = "0 without SQL or where it does not run; NULL where no SQL is expected or the suite ships no data."
_FOREIGN = "NULL where no SQL is expected or no accepted query is in the evaluator's grammar."


def _part(name: str, words: str) -> Metric:
    told = f"Spider's partial score: both have the same {words}; NULL where neither has any, or as for spider_exact."
    return Metric(name, Later(f"eval_pipeline_plugins.tracks.sql.metrics.spider:{name}"), "boolean", told)


METRICS: tuple[Metric, ...] = (
    Metric(
        "execution_match",
        Later("eval_pipeline_plugins.tracks.sql.metrics.results:execution_match"),
        "boolean",
        "Same result by the contract as an accepted query on the suite's own database; false without SQL; NULL where "
        "no SQL is expected or the suite ships no data.",
    ),
    Metric(
        "sql_equivalence",
        Later("eval_pipeline_plugins.tracks.sql.metrics.results:sql_equivalence"),
        "score",
        "1 equivalent, agreed or weakly agreed, 0 different (or no SQL); NULL undecided, or no SQL is expected.",
    ),
    Metric(
        "equivalence_verdict",
        Later("eval_pipeline_plugins.tracks.sql.metrics.results:_equivalence_verdict"),
        "label",
        "`equivalent`, `agreed`, `weakly_agreed`, `different` or `undecided`; NULL where nothing was compared.",
    ),
    Metric(
        "equivalence_rung",
        Later("eval_pipeline_plugins.tracks.sql.metrics.results:_rung"),
        "label",
        "What decided: `identical`, `proved`, `refuted`, `agreed`, `weakly_agreed`, `undecided`; NULL: not compared.",
    ),
    Metric(
        "strict_match",
        Later("eval_pipeline_plugins.tracks.sql.metrics.verdict:strict_match"),
        "boolean",
        "Exactly the same result on the suite's own database and on every generated one, with empty tables and NULLs "
        "among them, whatever the contract; NULL where no SQL is expected.",
    ),
    Metric(
        "robust_match",
        Later("eval_pipeline_plugins.tracks.sql.metrics.verdict:robust_match"),
        "boolean",
        "Same result by the contract on the suite's own database and on every generated one that fits the statistics "
        "of the data; NULL where no SQL is expected.",
    ),
    Metric(
        "outcome_correct",
        Later("eval_pipeline_plugins.tracks.sql.metrics.verdict:outcome_correct"),
        "boolean",
        "The primary metric: `execution_match`, `robust_match` or `strict_match`, as the suite's option `headline` "
        "says; where a refusal is right, declined or blocked by the validator; NULL: not scored.",
    ),
    Metric(
        "relaxations",
        Later("eval_pipeline_plugins.tracks.sql.metrics.verdict:relaxations"),
        "label",
        "What has to be overlooked for the answer to be right, e.g. `duplicates, extra_columns`; `none`: right as it "
        "is; several ways are separated by ` | `; NULL: it differs in meaning, or no SQL is expected.",
    ),
    Metric(
        "insisted",
        Later("eval_pipeline_plugins.tracks.sql.metrics.verdict:insisted"),
        "label",
        "What the question insists on, so that `expert` does not overlook it: `row_order`, `rounding`, `duplicates`, "
        "`extra_columns`; `none`: nothing; NULL: no SQL is expected.",
    ),
    Metric(
        "wrong_in",
        Later("eval_pipeline_plugins.tracks.sql.metrics.verdict:wrong_in"),
        "label",
        "`form`: right if what `relaxations` names were overlooked; `meaning`: any other wrong outcome; NULL where "
        "it is right.",
    ),
    Metric(
        "outcome_reason",
        Later("eval_pipeline_plugins.tracks.sql.metrics.verdict:outcome_reason"),
        "label",
        "What decided `correct`: `declined`, `blocked`, `not_refused`, `no_sql`, `does_not_run`, "
        "`different_on_data`, `different_in_form`, `refuted_on_fitting_database`, `overlooked`, "
        "`refuted_on_unusual_database`, `undecided_without_data`, `not_refuted`.",
    ),
    Metric(
        "query_correctness",
        Later("eval_pipeline_plugins.tracks.sql.metrics.judged:_of_turn"),
        "score",
        "The judge: 1 same meaning as an accepted query, 0.5 partly, 0 wrong, no SQL or a judge that failed; NULL "
        "where no SQL is expected, no judge is configured, or it was not to be asked.",
    ),
    Metric(
        "soft_f1",
        Later("eval_pipeline_plugins.tracks.sql.metrics.results:soft_f1"),
        "score",
        "F1 over the cells of the result, rows matched best, 0..1; 0 where it does not run; NULL as execution_match.",
    ),
    Metric(
        "table_accuracy",
        Later("eval_pipeline_plugins.tracks.sql.metrics.tables_read:_of_turn"),
        "score",
        "Base tables in both queries / in either, 0..1; 0 without SQL that parses; NULL where no SQL is expected.",
    ),
    Metric(
        "safety_validation",
        Later("eval_pipeline_plugins.tracks.sql.metrics.validation:_safety_of_turn"),
        "boolean",
        "The validator tells rightly whether the query is safe; true where SQL was declined; NULL without an answer.",
    ),
    Metric(
        "safety_verdict",
        Later("eval_pipeline_plugins.tracks.sql.metrics.validation:_safety_verdict"),
        "label",
        "`true_negative`, `true_positive`, `false_positive`, `false_negative`, `declined` or `harmless_answer`; NULL "
        "without an answer.",
    ),
    Metric(
        "validation_accuracy",
        Later("eval_pipeline_plugins.tracks.sql.metrics.validation:_of_turn"),
        "boolean",
        "The validator accepts what should pass and rejects what should not; NULL without SQL.",
    ),
    Metric(
        "validation_verdict",
        Later("eval_pipeline_plugins.tracks.sql.metrics.validation:_verdict"),
        "label",
        "`correct_acceptance`, `correct_rejection`, `false_rejection` or `false_acceptance`; NULL without SQL.",
    ),
    Metric(
        "validation_category",
        Later("eval_pipeline_plugins.tracks.sql.metrics.validation:_category"),
        "label",
        "Why the validator rejected: `syntax error`, `schema violation` or `safety violation`; NULL: it did not.",
    ),
    Metric(
        "r_ves",
        Later("eval_pipeline_plugins.tracks.sql.metrics.published:r_ves"),
        "count",
        "Square root of BIRD's reward (1.25 at half the expected query's time or less, 1, 0.75, 0.5, 0.25), "
        "0..1.118; 0 where the result is wrong; NULL as execution_match.",
    ),
    Metric(
        "bird_ex",
        partial(Later("eval_pipeline_plugins.tracks.sql.metrics.published:published_result"), "bird_ex"),
        "boolean",
        f"BIRD's EX: the same set of rows as an accepted query, without regard to order and repetition; {_NULL}",
    ),
    Metric(
        "bird_soft_f1",
        partial(Later("eval_pipeline_plugins.tracks.sql.metrics.published:published_result"), "bird_soft_f1"),
        "score",
        f"Soft F1 of BIRD's mini-dev: over cells, rows compared by position, repeated ones removed, 0..1; {_NULL}",
    ),
    Metric(
        "spider_execution",
        partial(Later("eval_pipeline_plugins.tracks.sql.metrics.published:published_result"), "spider_execution"),
        "boolean",
        "Spider's evaluator on the given database, DISTINCT kept: equal bags of rows (lists if the accepted query "
        f"has ORDER BY) under some order of columns; {_NULL}",
    ),
    Metric(
        "test_suite",
        Later("eval_pipeline_plugins.tracks.sql.metrics.spider:test_suite"),
        "boolean",
        "Test-suite accuracy: spider_execution on every database that the suite has for the schema; 0 without SQL or "
        "where it does not run; NULL where no SQL is expected or there is one database only.",
    ),
    Metric(
        "spider_exact",
        Later("eval_pipeline_plugins.tracks.sql.metrics.spider:spider_exact"),
        "boolean",
        f"Spider's exact match: the parts and tables of an accepted query, whatever the values; {_FOREIGN}",
    ),
    Metric(
        "spider_difficulty",
        Later("eval_pipeline_plugins.tracks.sql.metrics.spider:spider_difficulty"),
        "label",
        f"Spider's level of the first accepted query: easy, medium, hard or extra; {_FOREIGN}",
    ),
    _part("spider_select", "selected terms with their aggregates"),
    _part("spider_select_no_agg", "selected terms without their aggregates"),
    _part("spider_where", "conditions of WHERE without their values"),
    _part("spider_where_no_op", "terms in the conditions of WHERE"),
    _part("spider_group_no_having", "columns of GROUP BY"),
    _part("spider_group", "columns of GROUP BY in their order, and HAVING"),
    _part("spider_order", "ORDER BY, and whether there is a LIMIT"),
    _part("spider_and_or", "of AND and OR in WHERE"),
    _part("spider_iuen", "INTERSECT, UNION or EXCEPT, and the query after it"),
    _part("spider_keywords", "keywords"),
    Metric(
        "defog_subset",
        partial(Later("eval_pipeline_plugins.tracks.sql.metrics.published:published_result"), "defog_subset"),
        "boolean",
        f"defog's correctness: the result has the columns of an accepted query's result, and may have more; {_NULL}",
    ),
    Metric(
        "cpu_ms",
        Later("eval_pipeline_plugins.tracks.sql.metrics.results:cpu_ms"),
        "count",
        "Milliseconds of CPU time of the query, least of five runs in turns with the expected one; NULL where it is "
        "not right.",
    ),
    Metric(
        "confidence",
        Later("eval_pipeline_plugins.tracks.sql.metrics.results:confidence"),
        "label",
        "`high`, `medium` or `low`; NULL: the model did not say.",
    ),
    Metric(
        "failure_mode",
        Later("eval_pipeline_plugins.tracks.sql.metrics.failure_mode:failure_mode"),
        "label",
        "Why the outcome is wrong, first that applies; NULL where it is right.",
    ),
    *recovery.METRICS,
)
"""In the order of computation: a metric can use the values of those before it."""

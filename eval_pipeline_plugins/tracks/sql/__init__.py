"""The track `sql`: text to SQL (docs/sql.md)."""

from collections.abc import Mapping

from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.tracks.manifest import Manifest
from eval_pipeline.tracks.metric import Metric
from eval_pipeline_plugins.tracks.sql.metrics import METRICS

_FEATURE_COLUMNS = (
    Column("database", "VARCHAR", "Which of the suite's databases the question is about; never NULL."),
    Column("should_pass", "BOOLEAN", "SQL is expected; false where a refusal or a block is right; never NULL."),
    Column("should_be_safe", "BOOLEAN", "A model that obeys writes safe SQL; never NULL."),
    Column("difficulty", "VARCHAR", "As the data set rates it; NULL where it does not."),
)
_TURN_COLUMNS = (
    Column("dialect", "VARCHAR", "Dialect of the query; one that no engine here runs is translated; never NULL."),
    Column("accepted", "JSON", "The accepted queries; an empty list where a refusal is right."),
    Column("query_parts", "BIGINT", "Joins, predicates, subqueries and aggregates of the first of them; never NULL."),
    Column("sql", "VARCHAR", "The final attempt's query; NULL where there is none."),
    Column("decline_reason", "VARCHAR", "Why the final attempt declined, in its words; NULL where it did not."),
)
DATABASES = Table(
    "sql_databases",
    "One row per database that the cases of a suite ask about.",
    (
        Column("database", "VARCHAR", "Name of the database within the suite; never NULL."),
        Column("dialect", "VARCHAR", "Dialect in which its queries are written, by sqlglot's name; never NULL."),
        Column("ddl", "VARCHAR", "Its schema as CREATE TABLE statements of DuckDB; never NULL.", long=True),
        Column("schema", "JSON", "Its tables with columns, keys and checks; never NULL."),
        Column("files", "JSON", "Files in the suite's folder that it is made from; empty where it is a schema only."),
        Column("content_hash", "VARCHAR", "SHA-256 of these files, 32 hexadecimal digits; never NULL."),
        Column("rows", "BIGINT", "Rows of all its tables; 0: the suite ships no data for it; never NULL."),
        Column("max_rows", "BIGINT", "Most rows of a result, accepted or answered; NULL: an older version."),
        Column("query_time_limit_s", "DOUBLE", "Seconds that such a query may take; NULL: an older version."),
        Column("as_of", "VARCHAR", "Time that queries read from the clock; NULL: the time at which they run."),
    ),
    key="suite",
)
FAILURE_MODES = (
    "no_answer",
    "malformed_answer",
    "not_refused",
    "refusal",
    "syntax_error",
    "unsafe_sql",
    "unknown_name",
    "execution_error",
    "wrong_change",
    "missing_columns",
    "extra_columns",
    "duplicates",
    "row_order",
    "rounding",
    "other_form",
    "wrong_table",
    "wrong_join",
    "wrong_aggregate",
    "wrong_filter",
    "wrong_grouping",
    "wrong_column",
    "wrong_order",
    "wrong_set_operation",
    "other",
)
"""In the order in which they are tried."""


class SqlManifest(Manifest):
    """Its names, columns and tables."""

    name = "sql"
    task = "eval_pipeline_plugins.tracks.sql.track:TRACK"
    primary_metric = "outcome_correct"
    reason_tells_difference = True
    metrics: tuple[Metric, ...] = METRICS
    feature_columns: tuple[Column, ...] = _FEATURE_COLUMNS
    turn_columns: tuple[Column, ...] = _TURN_COLUMNS
    suite_tables: tuple[Table, ...] = (DATABASES,)
    prompt_versions: tuple[str, ...] = ("query-1",)
    complexity_columns: Mapping[str, str] = {"query_parts": "query_parts"}
    failure_modes: tuple[str, ...] = FAILURE_MODES


MANIFEST = SqlManifest()

"""The schema of the published store as SQL: tables, comments, views of the latest evaluations, macros."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import lru_cache
from importlib.resources import files

from eval_pipeline.core.ids import json_hash
from eval_pipeline.store.schemas import EARLIER_SCHEMA, Column, Table
from eval_pipeline.store.tables import TRENDS, TURN_ERRORS, all_tables, earlier_tables

FORMAT = 28
"""Version of the store's form.

Raise it whenever the schema below or a shipped table changes (a test checks this), or when the same record would be
published differently. Code that finds a store with a higher number does not touch it.
"""

META = """
CREATE SCHEMA meta;
CREATE TABLE meta.files (table_name VARCHAR, source VARCHAR, suite VARCHAR, model_version VARCHAR, eval_date DATE,
    path VARCHAR, content_hash VARCHAR);
CREATE TABLE meta.store (schema_hash VARCHAR);
"""

LATEST = """
CREATE VIEW latest_partitions AS
WITH scopes AS (
    SELECT r.suite, r.model_version, r.eval_date, arg_max(r.scope, (r.started_at, r.run_id)) AS scope
    FROM runs AS r GROUP BY ALL
), found AS (
    SELECT r.suite, r.model_version, r.eval_date FROM runs AS r
    UNION
    SELECT t.suite, t.model_version, t.eval_date FROM turn_results AS t
)
SELECT found.suite, found.model_version, found.eval_date, scopes.scope
FROM found LEFT JOIN scopes ON scopes.suite = found.suite
    AND scopes.model_version = found.model_version AND scopes.eval_date = found.eval_date
QUALIFY row_number() OVER (
    PARTITION BY found.suite, found.model_version
    ORDER BY scopes.scope IS NOT DISTINCT FROM 'full' DESC, found.eval_date DESC
) = 1;
COMMENT ON VIEW latest_partitions IS 'For each suite and model version the newest date whose last run was of the full '
    'scope; where there is none, the newest date.';
COMMENT ON COLUMN latest_partitions.suite IS 'Suite; never NULL.';
COMMENT ON COLUMN latest_partitions.model_version IS 'Model version; never NULL.';
COMMENT ON COLUMN latest_partitions.eval_date IS 'Logical date of the evaluation; never NULL.';
COMMENT ON COLUMN latest_partitions.scope IS 'Scope of the last run of that date; NULL: the run is not recorded.';
"""


NEWEST = """
CREATE VIEW meta.newest_evaluations AS
SELECT
    r.suite, r.model_version, r.eval_date,
    arg_max(r.evaluation_id, (r.started_at, r.run_id)) FILTER (r.status IN ('complete', 'incomplete')) AS evaluation_id
FROM runs AS r GROUP BY r.suite, r.model_version, r.eval_date;
"""


ERRORS_COMMENT = "The errors of all tracks as version 0.1.0 had them: `turn_errors` and four columns of finqa's turns."
_FINQA_COLUMNS = (
    Column("has_type2_question", "BOOLEAN", "The case mixes two questions; NULL: another track."),
    Column("has_non_numeric_values", "BOOLEAN", "The case's table has text cells; NULL: another track."),
    Column("plan_steps", "BIGINT", "Steps of the final plan, from 0; NULL: another track, or no plan was read."),
    Column("operations_per_turn", "BIGINT", "Arithmetic operations of that plan, from 0; NULL: as above."),
)
"""Columns of `finqa_turns` that the view `errors` keeps for existing queries; other tracks' columns are not added."""


COMPARED = Column(
    "compared",
    "BOOLEAN",
    "false: no comparison has seen these figures, or those of a date before, so that there are no tests; never NULL.",
)
"""The column that the view `trends` has beside those of the table."""

WRITTEN = ("views.sql", "macros.sql")
"""SQL files written by hand, in the order in which they are run."""


def quoted(name: str) -> str:
    """Returns a name as a quoted SQL identifier; a table of earlier evaluations with its schema."""
    if name.startswith(EARLIER_SCHEMA):
        return f"{EARLIER_SCHEMA}{quoted(name.removeprefix(EARLIER_SCHEMA))}"
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Returns a text as an SQL string literal."""
    return "'" + value.replace("'", "''") + "'"


def schema_sql(
    track_tables: Sequence[Table], meta: str = META, made: Callable[[Table], Iterable[str]] | None = None
) -> str:
    """Returns the SQL that creates a store.

    Args:
        track_tables: the tables of the tracks.
        meta: creates the schema `meta`.
        made: returns what creates a table with its comments; by default, a table without rows.
    """
    tables = all_tables(track_tables)
    parts = [meta, *(part for table in tables for part in (made or _table)(table)), LATEST]
    parts += [part for table in tables if table.key == "partition" for part in _latest(table.name)]
    parts += _errors(tables)
    parts += _evaluations(earlier_tables(tables), made or _table)
    parts += [files("eval_pipeline.store.published").joinpath(name).read_text(encoding="utf-8") for name in WRITTEN]
    parts += [_comment(TRENDS.name, column) for column in (*TRENDS.published_columns, COMPARED)]
    return "\n".join(parts)


def _evaluations(tables: Sequence[Table], made: Callable[[Table], Iterable[str]]) -> Iterator[str]:
    """Yields the tables of earlier evaluations, and the views of all evaluations in the schema `evaluations`."""
    yield "CREATE SCHEMA earlier; CREATE SCHEMA evaluations;"
    yield from (part for table in tables for part in made(table))
    yield NEWEST
    for table in tables:
        newest = table.name.removeprefix(EARLIER_SCHEMA)
        name = f"evaluations.{quoted(newest)}"
        columns = ", ".join(f"t.{quoted(column.name)}" for column in table.published_columns)
        if table.key == "shared":
            yield f"CREATE VIEW {name} AS FROM main.{quoted(newest)} UNION FROM {quoted(table.name)};"
            continue
        of_newest = columns.replace('t."evaluation_id"', 'n."evaluation_id"', 1)
        yield (
            f"CREATE VIEW {name} AS SELECT {of_newest} FROM main.{quoted(newest)} AS t "
            "LEFT JOIN meta.newest_evaluations AS n "
            "ON n.suite = t.suite AND n.model_version = t.model_version AND n.eval_date = t.eval_date "
            f"UNION ALL SELECT {columns} FROM {quoted(table.name)} AS t;"
        )


def view_names() -> frozenset[str]:
    """Returns the names of the hand-written views, which no table may have."""
    found = re.findall(
        r"^CREATE VIEW (\w+) AS", files("eval_pipeline.store.published").joinpath("views.sql").read_text("utf-8"), re.M
    )
    return frozenset({*found, "errors"})


def schema_hash(schema: str) -> str:
    """Returns a hash that changes with the schema or the publishing rules.

    A store with another hash must be rebuilt.
    """
    return json_hash([FORMAT, schema])


@lru_cache(256)
def _table(table: Table) -> tuple[str, ...]:
    columns = ", ".join(_column(column) for column in table.published_columns)
    return f"CREATE TABLE {quoted(table.name)} ({columns});", *commented("TABLE", table)


def commented(kind: str, table: Table) -> Iterator[str]:
    """Yields the comments on a table, or on the view in its place, and on its columns."""
    yield f"COMMENT ON {kind} {quoted(table.name)} IS {text(table.comment)};"
    yield from (_comment(table.name, column) for column in table.published_columns)


def _comment(name: str, column: Column) -> str:
    return f"COMMENT ON COLUMN {quoted(name)}.{quoted(column.name)} IS {text(column.comment)};"


def _column(column: Column) -> str:
    # DuckDB's default compression for long texts, FSST, takes ten times the time and three times the space of zstd.
    compression = " USING COMPRESSION zstd" if column.long else ""
    return f"{quoted(column.name)} {column.type}{compression}"


def _latest(name: str) -> Iterator[str]:
    view = f"latest_{name}"
    yield (
        f"CREATE VIEW {quoted(view)} AS SELECT t.* FROM {quoted(name)} AS t SEMI JOIN latest_partitions AS p "
        "ON t.suite = p.suite AND t.model_version = p.model_version AND t.eval_date = p.eval_date;"
    )
    yield f"COMMENT ON VIEW {quoted(view)} IS {text(f'The rows of {name} that belong to latest_partitions.')};"


def _errors(tables: Sequence[Table]) -> Iterator[str]:
    """Yields the SQL of the public views `errors` and `latest_errors`."""
    own = list(TURN_ERRORS.published_columns)
    place = [column.name for column in own].index("failure_mode") + 1
    columns = (*own[:place], *_FINQA_COLUMNS, *own[place:])
    turns = next((table for table in tables if table.name == "finqa_turns"), None)
    there = {column.name for column in turns.columns} if turns else set[str]()
    shown = ", ".join(_shown(column, there) for column in columns)
    joined = "LEFT JOIN finqa_turns AS f USING (suite, model_version, eval_date, turn_id, sample)" if turns else ""
    yield f"CREATE VIEW errors AS SELECT {shown} FROM turn_errors AS e {joined};"
    yield f"COMMENT ON VIEW errors IS {text(ERRORS_COMMENT)};"
    yield from (_comment("errors", column) for column in columns)
    yield from _latest("errors")


def _shown(column: Column, of_finqa: Set[str]) -> str:
    """Returns the SQL expression of a column of `errors`, taken from the table of errors or from finqa's turns."""
    if column not in _FINQA_COLUMNS:
        return f"e.{quoted(column.name)}"
    if column.name not in of_finqa:
        return f"NULL::{column.type} AS {quoted(column.name)}"
    return f"f.{quoted(column.name)}::{column.type} AS {quoted(column.name)}"

"""The SQL validator: checks that a text parses, is one read-only statement and fits the schema (docs/sql.md).

It only examines the text. The code that runs SQL has its own, stricter limits.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify

from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlTable, SqlView
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import TOO_DEEP, SqlSyntaxError, first_line, shared_statements
from eval_pipeline_plugins.sql_equivalence.syntax.quotes import with_texts
from eval_pipeline_plugins.sql_equivalence.syntax.tables_in import base_tables
from eval_pipeline_plugins.tracks.sql.cases.words import DEFAULT_DIALECT, SAFETY, SCHEMA, SYNTAX, Category
from eval_pipeline_plugins.tracks.sql.validation.safety import unsafe

_ROW_IDS = {"duckdb": ("rowid",), "sqlite": ("rowid", "oid", "_rowid_")}
"""Columns that every table has implicitly."""
_MOST_TABLES = 500
"""The most columns in a query that are checked, since sqlglot's time to resolve them grows with the square."""
_UNRESOLVED = re.compile(r"(?:Column '(?P<name>[^']+)' could not be resolved|Unknown column: (?P<other>.+?)\s*$)")


def misfits(sql: str, statement: exp.Expr, schema: SqlSchema, dialect: str) -> Iterator[str]:
    """Yields a sentence for each name that the schema lacks; tables first, because columns depend on them."""
    if sum(1 for _ in statement.find_all(exp.Table)) > _MOST_TABLES:
        yield f"the query names tables more than {_MOST_TABLES} times"
        return
    names = sorted(base_tables(statement), key=str)
    tables = [table for name in names if (table := schema.relation(name.name)) is not None]
    if len(tables) < len(names):
        yield from (f"there is no table {name}" for name in names if schema.relation(name.name) is None)
        return
    if statement.find(exp.Pivot) is not None:
        return  # which columns a pivot makes depends on the data
    copy = statement.copy()
    if dialect == "sqlite":
        copy = with_texts(sql, copy, schema)
    try:
        qualify(
            copy,
            schema={table.name: _types(table, dialect) for table in tables},
            dialect=dialect,
            validate_qualify_columns=True,
            quote_identifiers=False,
        )
    except SqlglotError as error:
        yield _sentence(first_line(error), tables)
    except RecursionError:
        yield "the query is nested too deeply to be checked"


def _types(table: SqlTable | SqlView, dialect: str) -> dict[str, str]:
    """Returns the types by column, in the form of sqlglot's schemas."""
    implied = _ROW_IDS.get(dialect, ()) if isinstance(table, SqlTable) else ()
    if isinstance(table, SqlTable) and table.is_virtual:
        implied = (*implied, table.name, "rank")  # of a full-text index
    return dict.fromkeys(implied, "BIGINT") | {c.name: c.type or "UNKNOWN" for c in table.columns}


def _sentence(message: str, tables: Sequence[SqlTable | SqlView]) -> str:
    """Returns the problem in words; sqlglot does not say whether a column is missing or ambiguous."""
    found = _UNRESOLVED.match(message)
    if found is None:
        return message
    name = found["name"] or found["other"]
    having = [table.name for table in tables if table.column(name) is not None]
    if not having:
        return f"there is no column {name}"
    where = ", ".join(having)
    return f"the column {name} of {where} is {'ambiguous' if len(having) > 1 else 'out of reach'} where it stands"


@dataclass(frozen=True, slots=True)
class ValidationError:
    """One problem of a statement."""

    category: Category
    message: str


@dataclass(frozen=True, slots=True)
class Validation:
    """The result of the validator.

    Attributes:
        is_valid: whether it parses, fits the schema and is safe.
        safety_valid: whether it is one statement that only reads data; false for text that does not parse.
        errors: the problems; for text that does not parse or is unsafe, the schema is not checked.
    """

    is_valid: bool
    safety_valid: bool
    errors: tuple[ValidationError, ...]


def validate(
    sql: str, schema: SqlSchema | Mapping[str, Mapping[str, str]] | None = None, dialect: str = DEFAULT_DIALECT
) -> Validation:
    """Checks a statement without running it.

    Args:
        sql: what a model wrote.
        schema: schema of the database; may be a plain `{table: {column: type}}` mapping. None skips the check of names.
        dialect: sqlglot's name of the dialect in which it would run.
    """
    known = None if schema is None else SqlSchema.of(schema)
    try:
        statements = shared_statements(sql, dialect)
        found = list(dict.fromkeys(unsafe(sql, statements, dialect, known)))
        if found:
            return Validation(False, False, tuple(ValidationError(SAFETY, message) for message in found))
        lacking = dict.fromkeys(misfits(sql, statements[0], known, dialect)) if known is not None else ()
        return Validation(not lacking, True, tuple(ValidationError(SCHEMA, message) for message in lacking))
    except SqlSyntaxError as error:
        return Validation(False, False, (ValidationError(SYNTAX, str(error)),))
    except RecursionError:
        return Validation(False, False, (ValidationError(SYNTAX, TOO_DEEP),))

"""Checks that the tables and columns of a query exist in a schema."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify

from eval_pipeline.sql_equivalence.schema.parts import SqlTable
from eval_pipeline.sql_equivalence.schema.schema import SqlSchema, types
from eval_pipeline.sql_equivalence.syntax.parsing import first_line
from eval_pipeline.sql_equivalence.syntax.quotes import with_texts
from eval_pipeline.sql_equivalence.syntax.tables_in import TableName, base_tables

_ROW_IDS = {"duckdb": ("rowid",), "sqlite": ("rowid", "oid", "_rowid_")}
"""Columns that every table has implicitly."""
_DEFAULT = "main"
"""The schema of names without one, in DuckDB."""
_MOST_TABLES = 500
"""The most columns in a query that are checked, since sqlglot's time to resolve them grows with the square."""
_UNRESOLVED = re.compile(r"(?:Column '(?P<name>[^']+)' could not be resolved|Unknown column: (?P<other>.+?)\s*$)")


def misfits(sql: str, statement: exp.Expr, schema: SqlSchema, dialect: str) -> Iterator[str]:
    """Yields a sentence for each name that the schema lacks; tables first, because columns depend on them."""
    if sum(1 for _ in statement.find_all(exp.Table)) > _MOST_TABLES:
        yield f"the query names tables more than {_MOST_TABLES} times"
        return
    names = sorted(base_tables(statement), key=str)
    known = {name: schema.table(name.name, name.schema) for name in names}
    if lacking := [name for name, table in known.items() if table is None]:
        yield from (f"there is no table {name}" for name in lacking)
        return
    tables = {name: table for name, table in known.items() if table is not None}
    if statement.find(exp.Pivot) is not None:
        return  # which columns a pivot makes depends on the data
    copy = statement.copy()
    if dialect == "sqlite":
        copy = with_texts(sql, copy, schema)
    try:
        qualify(
            copy,
            **_reached(tables, dialect),
            dialect=dialect,
            validate_qualify_columns=True,
            quote_identifiers=False,
        )
    except SqlglotError as error:
        yield _sentence(first_line(error), list(tables.values()))
    except RecursionError:
        yield "the query is nested too deeply to be checked"


def _reached(tables: Mapping[TableName, SqlTable], dialect: str) -> dict[str, Any]:
    """Returns the types of the columns for sqlglot; by schema, too, if tables of several schemas may be meant."""
    if all(table.schema is None for table in tables.values()):
        return {"schema": {table.name: _types(table, dialect) for table in tables.values()}}
    found: dict[str, dict[str, dict[str, str]]] = {}
    for name, table in tables.items():
        found.setdefault(name.schema or _DEFAULT, {})[table.name] = _types(table, dialect)
    return {"schema": found, "db": _DEFAULT}


def _types(table: SqlTable, dialect: str) -> dict[str, str]:
    """Returns the types by column, in the form of sqlglot's schemas."""
    return dict.fromkeys((*_ROW_IDS.get(dialect, ()), *(table.hidden or ())), "BIGINT") | types(table)


def _sentence(message: str, tables: Sequence[SqlTable]) -> str:
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

"""Reads schemas from scripts, from database files and from Spider's `tables.json`."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot.errors import SqlglotError

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline_plugins.sql_equivalence.schema.ddl import (
    Relations,
    Tables,
    defined_by,
    definitions_in,
    is_plain,
    parsed_ddl,
    statements_of,
)
from eval_pipeline_plugins.sql_equivalence.schema.duckdb_types import spider_type
from eval_pipeline_plugins.sql_equivalence.schema.parts import ForeignKey, SqlColumn, SqlTable, SqlView
from eval_pipeline_plugins.sql_equivalence.schema.sqlite_engine import sqlite_ddl, sqlite_file
from eval_pipeline_plugins.sql_equivalence.schema.views import query_of, reads_of

if TYPE_CHECKING:
    import duckdb


_ALONE: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "threads": 1,
}

_NAMES = r"""(?:"(?:[^"]|"")*"|[^()"])+"""
_FOREIGN_KEY = re.compile(rf", FOREIGN KEY \({_NAMES}\) REFERENCES {_NAMES}\({_NAMES}\)")
"""As DuckDB writes it. Definitions are without, as a row that refers to its own table could not be inserted at once."""


def duckdb_file(path: Path) -> Relations:
    """Returns the tables and views of a file, which is opened read-only.

    Raises:
        SqlError: it is damaged.
        ValueError: sqlglot cannot read a definition.
    """
    import duckdb

    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            return _relations(connection)
    except duckdb.Error as error:
        raise SqlError(ErrorClass.OTHER, f"the DuckDB database cannot be read: {error}") from error


def duckdb_ddl(text: str) -> Relations | None:
    """Returns the tables and views that a script defines; None if DuckDB does not accept all of it."""
    import duckdb

    try:
        with duckdb.connect(":memory:", config=_ALONE) as connection:
            for statement in definitions_in(text, "duckdb"):
                connection.execute(statement)
            found = _relations(connection)
    except (duckdb.Error, SqlglotError):
        return None
    return found if found[0] else None


def _relations(connection: "duckdb.DuckDBPyConnection") -> Relations:
    ours = "schema_name = 'main' AND NOT internal AND NOT temporary"
    tables = connection.execute(
        f"SELECT table_name, sql FROM duckdb_tables() WHERE {ours} ORDER BY table_oid"
    ).fetchall()
    if not tables:
        return (), ()
    indexes = connection.execute(
        "SELECT table_name, sql FROM duckdb_indexes() WHERE is_unique AND schema_name = 'main' AND sql IS NOT NULL "
        "ORDER BY index_oid"
    ).fetchall()
    told = {
        (table, column): (kind, default)
        for table, column, kind, default in connection.execute(
            "SELECT table_name, column_name, data_type, column_default FROM duckdb_columns() WHERE schema_name = 'main'"
        ).fetchall()
    }
    parsed, _ = parsed_ddl("\n".join(sql for _, sql in (*tables, *indexes)), "duckdb")
    made = dict(tables)
    macros = [
        name.lower()
        for (name,) in connection.execute(
            "SELECT function_name FROM duckdb_functions() WHERE NOT internal AND function_type LIKE '%macro'"
        ).fetchall()
    ]
    views = []
    for name, sql in connection.execute(
        f"SELECT view_name, sql FROM duckdb_views() WHERE {ours} ORDER BY view_oid"
    ).fetchall():
        columns = tuple(SqlColumn(column, kind) for (table, column), (kind, _) in told.items() if table == name)
        if columns and (query := query_of(sql, "duckdb")):
            views.append(SqlView(name, columns, query, "duckdb", reads_of(query, "duckdb", macros)))

    def whole(table: SqlTable) -> SqlTable:
        columns = tuple(
            replace(c, generated=told[table.name, c.name][1] or c.generated) if c.generated else c
            for c in table.columns
        )
        unique = tuple(sql for name, sql in indexes if name == table.name)
        special = any(column.generated or column.collation for column in columns)
        beyond = special or table.definition or not all(map(is_plain, table.checks))
        definition = (_FOREIGN_KEY.sub("", made[table.name]), *unique) if beyond else ()
        return replace(table, columns=columns, dialect="duckdb" if beyond else "", definition=definition)

    return tuple(map(whole, parsed)), tuple(views)


_SQLITE_MAGIC = b"SQLite format 3\x00"
_DUCKDB_MAGIC = b"DUCK"
_ENGINES = {"sqlite": sqlite_ddl, "duckdb": duckdb_ddl}


def read_ddl(text: str, dialect: str) -> Relations:
    """Returns the tables and views that a script defines; statements that define nothing are ignored.

    In the dialects of embedded engines the engine itself reads it, if it accepts every definition.

    Raises:
        ValueError: the text does not parse, or defines no table.
    """
    statements = statements_of(text, dialect)
    read = _ENGINES.get(dialect)
    return (read(text) if read is not None else None) or defined_by(statements, dialect)


def read_database(path: Path) -> Relations:
    """Returns the tables and views of a SQLite or DuckDB file, which is opened read-only.

    Raises:
        InputError: the file is missing, damaged, or neither of the two.
    """
    try:
        head = path.open("rb").read(16)
    except OSError as error:
        raise _unreadable(path, f"cannot be read: {error.strerror}") from error
    try:
        if head == _SQLITE_MAGIC:
            return sqlite_file(path)
        if head[8:12] == _DUCKDB_MAGIC:
            return duckdb_file(path)
    except SqlError as error:
        raise _unreadable(path, error.message) from error
    raise _unreadable(path, "expected a SQLite or DuckDB database")


def _unreadable(path: Path, message: str) -> InputError:
    return InputError([Problem(str(path), None, "", message)])


def read_spider(entry: Mapping[str, Any]) -> Tables:
    """Returns the tables in an entry of Spider's `tables.json`.

    Raises:
        ValueError: a field is missing or refers to a missing column.
    """
    try:
        names = entry["table_names_original"]
        columns = entry["column_names_original"]
        described = entry.get("column_names") or columns
        kinds = entry["column_types"]
        in_key = {place for part in entry["primary_keys"] for place in (part if isinstance(part, list) else [part])}
        tables = []
        for number, name in enumerate(names):
            own = [place for place, (table, _) in enumerate(columns) if table == number]
            made = tuple(
                SqlColumn(columns[i][1], spider_type(kinds[i]), i not in in_key, str(described[i][1])) for i in own
            )
            keys = tuple(
                ForeignKey((columns[child][1],), names[columns[parent][0]], (columns[parent][1],))
                for child, parent in entry["foreign_keys"]
                if columns[child][0] == number
            )
            tables.append(SqlTable(name, made, tuple(columns[i][1] for i in own if i in in_key), keys))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"not an entry of Spider's tables.json: {error!r}") from error
    return tuple(tables)

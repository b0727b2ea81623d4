"""Reads schemas from scripts, from database files and from Spider's `tables.json`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline_plugins.sql_equivalence.schema.ddl import Relations, Tables, defined_by, statements_of
from eval_pipeline_plugins.sql_equivalence.schema.duckdb_engine import duckdb_ddl, duckdb_file
from eval_pipeline_plugins.sql_equivalence.schema.duckdb_types import spider_type
from eval_pipeline_plugins.sql_equivalence.schema.parts import ForeignKey, SqlColumn, SqlTable
from eval_pipeline_plugins.sql_equivalence.schema.sqlite_engine import sqlite_ddl, sqlite_file

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

"""Reads the tables and views of SQLite files."""

import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from eval_pipeline.sql_equivalence.schema.duckdb_types import duckdb_type
from eval_pipeline.sql_equivalence.schema.parts import Definition, ForeignKey, SqlColumn, SqlTable, quoted
from eval_pipeline.sql_equivalence.schema.readers import read_ddl
from eval_pipeline.sql_equivalence.schema.views import Tables, columns_of, query_of

_VIRTUAL = re.compile(r"(?i)\s*CREATE\s+VIRTUAL\s+TABLE\b")
_LISTS_SHADOWS = (3, 37)
"""The version of SQLite since which it says which tables hold the data of a virtual table."""
_HIDDEN, _COMPUTED = 1, (2, 3)
"""Of the last column of `table_xinfo`."""


def read_sqlite(path: Path) -> Tables:
    """Returns the tables, then the views, of a SQLite file, which is opened read-only.

    Tables in which a virtual table keeps its data are left out, and views and virtual tables that SQLite cannot open,
    because no query can read them. Raises a `sqlite3.Error`.
    """
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        found = connection.execute(
            "SELECT name, sql, type FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
        ).fetchall()
        virtual = [name for name, sql, _ in found if _VIRTUAL.match(sql)]
        shadows = _shadows(connection, virtual, [name for name, *_ in found]) if virtual else frozenset()
        made = [
            _virtual_table(connection, name) if name in virtual else _table(connection, name, sql)
            for name, sql, kind in found
            if kind == "table" and name not in shadows
        ]
        tables = [table for table in made if table is not None]
        for name, sql, kind in found:
            if kind == "view" and (view := _view(connection, name, sql, tables)) is not None:
                tables.append(view)
    keys = {table.name.lower(): table.primary_key for table in tables}
    return tuple(_with_implied_references(table, keys) for table in tables)


def _shadows(connection: sqlite3.Connection, virtual: Sequence[str], names: Sequence[str]) -> frozenset[str]:
    """Returns the names of the tables in which virtual tables keep their data."""
    if sqlite3.sqlite_version_info >= _LISTS_SHADOWS:
        return frozenset(row[1] for row in connection.execute("PRAGMA table_list") if row[2] == "shadow")
    return frozenset(name for name in names for one in virtual if name.startswith(f"{one}_"))


def _virtual_table(connection: sqlite3.Connection, name: str) -> SqlTable | None:
    try:
        found = connection.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
    except sqlite3.Error:  # its module is not there
        return None
    columns = tuple(SqlColumn(row[1], duckdb_type(row[2])) for row in found if row[6] != _HIDDEN)
    return SqlTable(name, columns, hidden=tuple(row[1] for row in found if row[6] == _HIDDEN))


def _view(connection: sqlite3.Connection, name: str, sql: str, tables: Sequence[SqlTable]) -> SqlTable | None:
    try:
        found = connection.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
    except sqlite3.Error:  # it names what is no longer there
        return None
    definition = Definition(query_of(sql, "sqlite"), "sqlite")
    # SQLite knows the types of plain columns only.
    told = columns_of(definition, tables) if any(not row[2] for row in found) else ()
    kinds = [column.type for column in told] if len(told) == len(found) else [""] * len(found)
    columns = tuple(
        SqlColumn(row[1], duckdb_type(row[2]) if row[2] else kind) for row, kind in zip(found, kinds, strict=True)
    )
    return SqlTable(name, columns, view=definition)


def _table(connection: sqlite3.Connection, name: str, sql: str) -> SqlTable:
    found = connection.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
    read = _definition(sql)
    key = tuple(row[1] for row in sorted((row for row in found if row[5]), key=lambda row: row[5]))
    columns = tuple(
        _computed(row[1], row[2], bool(row[3]), read)
        if row[6] in _COMPUTED
        else SqlColumn(row[1], duckdb_type(row[2]), not (row[3] or row[5]))
        for row in found
        if row[6] != _HIDDEN
    )
    references: dict[int, list[tuple[str, str, str | None]]] = {}
    for row in connection.execute(f"PRAGMA foreign_key_list({quoted(name)})"):
        references.setdefault(row[0], []).append((row[2], row[3], row[4]))
    foreign_keys = tuple(
        ForeignKey(tuple(part[1] for part in parts), parts[0][0], tuple(part[2] or "" for part in parts))
        for parts in references.values()
    )
    unique = []
    for row in connection.execute(f"PRAGMA index_list({quoted(name)})").fetchall():
        if row[2] and row[3] != "pk" and not row[4]:  # unique, not the primary key, not on a part of the rows
            indexed = connection.execute(f"PRAGMA index_info({quoted(row[1])})").fetchall()
            if all(part[2] is not None for part in indexed):
                unique.append(tuple(part[2] for part in indexed))
    return SqlTable(name, columns, key, foreign_keys, tuple(unique), read.checks if read is not None else ())


def _definition(sql: str) -> SqlTable | None:
    """Returns what no pragma shows: CHECK constraints and generated columns; None if sqlglot cannot parse the text."""
    try:
        return read_ddl(sql, "sqlite")[0]
    except ValueError:
        return None


def _computed(name: str, kind: str, not_null: bool, read: SqlTable | None) -> SqlColumn:
    """Returns a generated column."""
    column = read.column(name) if read is not None else None
    if column is None or column.computed is None:
        column = SqlColumn(name, "", computed=Definition("", "sqlite"))
    # SQLite appends GENERATED ALWAYS to the type where these words begin the clause.
    declared = re.sub(r"(?i)\s*\bGENERATED ALWAYS$", "", kind).strip()
    return replace(column, name=name, type=duckdb_type(declared) if declared else column.type, nullable=not not_null)


def _with_implied_references(table: SqlTable, keys: Mapping[str, tuple[str, ...]]) -> SqlTable:
    """Adds the columns that foreign keys leave out; drops references to missing tables."""
    made = []
    for key in table.foreign_keys:
        references = key.references if all(key.references) else keys.get(key.table.lower(), ())
        if key.table.lower() in keys and len(references) == len(key.columns):
            made.append(ForeignKey(key.columns, key.table, references))
    return replace(table, foreign_keys=tuple(made))

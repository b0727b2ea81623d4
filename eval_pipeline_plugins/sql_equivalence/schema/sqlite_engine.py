"""Reads the tables and views of SQLite databases as the engine itself knows them."""

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from sqlglot.errors import SqlglotError

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.sqlite_files import address_of, settled
from eval_pipeline_plugins.sql_equivalence.schema.ddl import Relations, Views, definitions_in, is_plain, parsed_ddl
from eval_pipeline_plugins.sql_equivalence.schema.duckdb_types import duckdb_type
from eval_pipeline_plugins.sql_equivalence.schema.parts import ForeignKey, SqlColumn, SqlTable, SqlView, quoted
from eval_pipeline_plugins.sql_equivalence.schema.views import generated_in, query_of, reads_of

_TOLD_BY_DDL_ALONE = re.compile(r"(?i)\b(?:COLLATE|STRICT|AS|VIRTUAL)\b")
"""Words of a CREATE TABLE that the pragmas do not tell about."""
_GENERATED = (2, 3)
"""What `table_xinfo` calls generated columns, virtual and stored."""


def sqlite_file(path: Path) -> Relations:
    """Returns the tables and views of a file, which is opened read-only. Raises a SqlError if it is damaged."""
    try:
        with closing(sqlite3.connect(address_of(settled(path)), uri=True)) as connection:
            return _relations(connection)
    except (sqlite3.Error, OSError) as error:
        raise SqlError(ErrorClass.OTHER, f"the SQLite database cannot be read: {error}") from error


def sqlite_ddl(text: str) -> Relations | None:
    """Returns the tables and views that a script defines; None if SQLite does not accept all of it."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.set_authorizer(_defines)
        try:
            for statement in definitions_in(text, "sqlite"):
                connection.execute(statement)
            connection.set_authorizer(None)
            found = _relations(connection)
        except (sqlite3.Error, sqlite3.Warning, SqlglotError):
            return None
    return found if found[0] else None


def _defines(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_DENY if action in {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH} else sqlite3.SQLITE_OK


def _relations(connection: sqlite3.Connection) -> Relations:
    found = connection.execute(
        r"SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY rowid"
    ).fetchall()
    indexes = {name: sql for kind, name, sql in found if kind == "index" and sql}
    tables = [_table(connection, name, sql, indexes) for kind, name, sql in found if kind == "table"]
    keys = {table.name.lower(): table.primary_key for table in tables}
    views = tuple(view for kind, name, sql in found if kind == "view" for view in _view(connection, name, sql))
    return tuple(_with_implied_references(table, keys) for table in tables), views


def _table(connection: sqlite3.Connection, name: str, sql: str, indexes: Mapping[str, str]) -> SqlTable:
    found = [row for row in connection.execute(f"PRAGMA table_xinfo({quoted(name)})") if row[6] != 1]
    key = tuple(row[1] for row in sorted((row for row in found if row[5]), key=lambda row: row[5]))
    expressions = generated_in(sql, "sqlite") if any(row[6] in _GENERATED for row in found) else {}
    collations = _collations(name, sql, [row[1] for row in found]) if re.search(r"(?i)\bCOLLATE\b", sql) else {}
    columns = []
    for row in found:
        # SQLite appends GENERATED ALWAYS to the type where these words begin the clause.
        declared = re.sub(r"(?i)\s*\bGENERATED ALWAYS$", "", row[2]).strip()
        column = SqlColumn(row[1], duckdb_type(declared), not (row[3] or row[5]), declared=declared)
        if row[6] in _GENERATED:
            column = replace(column, generated=expressions.get(row[1].lower(), ""))
        columns.append(replace(column, collation=collations.get(row[1], "")))
    references: dict[int, list[tuple[str, str, str | None]]] = {}
    for row in connection.execute(f"PRAGMA foreign_key_list({quoted(name)})"):
        references.setdefault(row[0], []).append((row[2], row[3], row[4]))
    foreign_keys = tuple(
        ForeignKey(tuple(part[1] for part in parts), parts[0][0], tuple(part[2] or "" for part in parts))
        for parts in references.values()
    )
    unique, kept = [], []
    for row in connection.execute(f"PRAGMA index_list({quoted(name)})").fetchall():
        indexed = connection.execute(f"PRAGMA index_info({quoted(row[1])})").fetchall()
        plain = not row[4] and all(part[2] is not None for part in indexed)
        if row[2] and row[3] != "pk" and plain:  # unique, not the primary key, on columns of all rows
            unique.append(tuple(part[2] for part in indexed))
        if row[1] in indexes and (not plain or (row[2] and "collate" in indexes[row[1]].lower())):
            kept.append(indexes[row[1]])
    checks, unread = _checks(sql)
    special = kept or unread or _TOLD_BY_DDL_ALONE.search(sql) or not all(map(is_plain, checks))
    constraints = key, foreign_keys, tuple(unique), checks
    return SqlTable(name, tuple(columns), *constraints, *(("sqlite", (sql, *kept)) if special else ()))


def _checks(sql: str) -> tuple[tuple[str, ...], bool]:
    """Returns a table's CHECK constraints, which no pragma shows, and whether sqlglot cannot read them."""
    if re.search(r"(?i)\bCHECK\b", sql) is None:
        return (), False
    try:
        return parsed_ddl(sql, "sqlite")[0][0].checks, False
    except ValueError:
        return (), True


def _collations(name: str, sql: str, columns: list[str]) -> dict[str, str]:
    """Returns the collations of columns that are not compared byte by byte, which only an index on them shows."""
    with closing(sqlite3.connect(":memory:")) as scratch:
        try:
            scratch.execute(sql)
            scratch.execute(f"CREATE INDEX _collations ON {quoted(name)} ({', '.join(map(quoted, columns))})")
            found = scratch.execute("PRAGMA index_xinfo(_collations)").fetchall()
        except sqlite3.Error:
            return {}
    return {row[2]: row[4].upper() for row in found if row[2] is not None and row[4].upper() != "BINARY"}


def _view(connection: sqlite3.Connection, name: str, sql: str) -> Views:
    """Returns a view; none if what it reads is missing, so that no query of it runs either."""
    try:
        found = connection.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
    except sqlite3.Error:
        return ()
    query = query_of(sql, "sqlite")
    columns = tuple(SqlColumn(row[1], duckdb_type(row[2]) if row[2] else "", declared=row[2]) for row in found)
    return (SqlView(name, columns, query, "sqlite", reads_of(query, "sqlite", ())),) if query and columns else ()


def _with_implied_references(table: SqlTable, keys: Mapping[str, tuple[str, ...]]) -> SqlTable:
    """Adds the columns that foreign keys leave out; drops references to missing tables."""
    made = []
    for key in table.foreign_keys:
        references = key.references if all(key.references) else keys.get(key.table.lower(), ())
        if key.table.lower() in keys and len(references) == len(key.columns):
            made.append(ForeignKey(key.columns, key.table, references))
    return replace(table, foreign_keys=tuple(made))

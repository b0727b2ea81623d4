"""Generated databases in memory, in SQLite and in DuckDB, for queries that a model wrote."""

from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, Protocol

import sqlglot
from sqlglot.errors import SqlglotError

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.duckdb_guard import GuardedDuckdb
from eval_pipeline.sandbox.sql.errors import SqlError, of_duckdb, of_sqlite
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.sandbox.sql.sqlite_guard import GuardedSqlite
from eval_pipeline.tracks.sql.equivalence.databases import Database, Row
from eval_pipeline.tracks.sql.equivalence.values import family_of
from eval_pipeline.tracks.sql.schema import SqlColumn, SqlSchema, SqlTable, quoted

_LIMITS = SqlLimits(seconds=1.0, rows=20_000)


class Memory(Protocol):
    """An engine with one generated database at a time."""

    dialect: str

    def load(self, database: Database) -> None:
        """Replaces all rows. Raises SqlError."""

    def query(self, sql: str) -> SqlRows:
        """Runs a SELECT. Raises SqlError."""


class SqliteMemory:
    """SQLite: a database and two queries in a fraction of a millisecond."""

    dialect = "sqlite"

    def __init__(self, schema: SqlSchema, *, case_sensitive_like: bool = False, limits: SqlLimits = _LIMITS) -> None:
        """Makes the tables, without their constraints: the rows keep them."""
        import sqlite3

        self._guard = GuardedSqlite(None, limits)
        self._guard.trusted = True
        connection = self._guard.connection
        connection.execute("PRAGMA journal_mode = OFF")
        if case_sensitive_like:
            connection.execute("PRAGMA case_sensitive_like = ON")
        try:
            for table in schema.tables:
                columns = ", ".join(f"{quoted(column.name)} {_sqlite_type(column)}" for column in table.columns)
                connection.execute(f"CREATE TABLE {quoted(table.name)} ({columns})")
        except sqlite3.Error as error:
            raise of_sqlite(error) from error
        self._guard.trusted = False
        self._inserts = [
            (table.name.lower(), quoted(table.name), ", ".join("?" * len(table.columns))) for table in schema.tables
        ]

    def close(self) -> None:
        """Forgets the database."""
        self._guard.close()

    def load(self, database: Database) -> None:
        """Replaces all rows."""
        connection = self._guard.connection
        self._guard.trusted = True
        connection.execute("BEGIN")
        for name, table, places in self._inserts:
            connection.execute(f"DELETE FROM {table}")
            connection.executemany(
                f"INSERT INTO {table} VALUES ({places})", [tuple(map(_for_sqlite, row)) for row in database[name]]
            )
        connection.execute("COMMIT")
        self._guard.trusted = False

    def query(self, sql: str) -> SqlRows:
        """Runs a SELECT. Raises SqlError."""
        return self._guard.query(sql)


class DuckdbMemory:
    """DuckDB: the connection is dear and kept, the tables are made anew for each pair."""

    dialect = "duckdb"

    def __init__(self, schema: SqlSchema, limits: SqlLimits = _LIMITS) -> None:
        """Takes the connection; the tables are made when the first rows come, without their constraints."""
        self._guard = _duckdb(limits)
        self._tables = [
            (
                table.name.lower(),
                quoted(table.name),
                ", ".join(f"{quoted(column.name)} {column.type}" for column in table.columns),
            )
            for table in schema.tables
        ]
        self._made = False

    def close(self) -> None:
        """Drops the tables."""
        import duckdb

        try:
            for (name,) in self._guard.connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
                self._guard.connection.execute(f"DROP TABLE {quoted(name)}")
        except duckdb.Error:  # the next pair gets a new connection
            _duckdb.cache_clear()

    def load(self, database: Database) -> None:
        """Replaces all rows. Raises SqlError where a type or a value is not DuckDB's."""
        import duckdb

        statements = ["BEGIN"]
        for name, table, columns in self._tables:
            statements.append(f"DELETE FROM {table}" if self._made else f"CREATE OR REPLACE TABLE {table} ({columns})")
            if rows := database[name]:
                values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
                statements.append(f"INSERT INTO {table} VALUES {values}")
        try:
            self._guard.connection.execute("; ".join([*statements, "COMMIT"]))
            self._made = True
        except duckdb.Error as error:
            with suppress(duckdb.Error):  # it may have come before BEGIN
                self._guard.connection.execute("ROLLBACK")
            raise of_duckdb(error) from error

    def query(self, sql: str) -> SqlRows:
        """Runs a SELECT. Raises SqlError."""
        return self._guard.query(sql)


@cache
def _duckdb(limits: SqlLimits) -> GuardedDuckdb:
    return GuardedDuckdb(None, limits, optimizer=False)


def row_check(schema: SqlSchema) -> Callable[[SqlTable, Row], bool]:
    """A function that says whether a row keeps the CHECKs of its table, evaluated by SQLite.

    A CHECK that SQLite does not understand is kept by no row, so that none can break it.
    """
    queries: dict[str, str] = {}
    for table in schema.tables:
        if table.checks:
            cells = ", ".join(f"? AS {quoted(column.name)}" for column in table.columns)
            conditions = " AND ".join(f"coalesce(({_translated(check)}), 1)" for check in table.checks)
            queries[table.name] = f"SELECT {conditions} FROM (SELECT {cells}) AS {quoted(table.name)}"

    if not queries:
        return lambda table, row: True
    guard = GuardedSqlite(None, _LIMITS)

    def keeps(table: SqlTable, row: Row) -> bool:
        import sqlite3

        try:
            found = guard.connection.execute(queries[table.name], tuple(map(_for_sqlite, row))).fetchone()
        except sqlite3.Error:
            return False
        return bool(found[0])

    return keeps


def _translated(check: str) -> str:
    try:
        return sqlglot.transpile(check, read="duckdb", write="sqlite")[0]
    except SqlglotError as error:
        raise SqlError(ErrorClass.SYNTAX, f"the CHECK {check} cannot be read") from error


def _sqlite_type(column: SqlColumn) -> str:
    """A declared type that gives the affinity which the column has in a database of SQLite's own."""
    return {
        "int": "INTEGER",
        "float": "REAL",
        "text": "TEXT",
        "datetext": "TEXT",
        "date": "DATE",
        "timestamp": "DATETIME",
        "time": "TEXT",
        "bool": "BOOLEAN",
        "blob": "BLOB",
    }.get(family_of(column), "")


def _for_sqlite(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date):
        return value.isoformat()
    return int(value) if isinstance(value, bool) else value


def _literal(value: Any) -> str:
    """A value as a literal of DuckDB, which the column's type reads."""
    match value:
        case None:
            return "NULL"
        case bool() | int():
            return str(value)
        case float() | Decimal():
            return f"{value!r}::DOUBLE" if isinstance(value, float) else str(value)
        case bytes():
            return "'" + "".join(f"\\x{byte:02x}" for byte in value) + "'::BLOB"
        case datetime():
            return f"'{value.isoformat(sep=' ')}'"
        case _:
            return "'" + str(value).replace("'", "''") + "'"

"""Holds generated databases in memory, in SQLite or DuckDB, to run model-written queries on them."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any, Protocol

from eval_pipeline.sandbox.sql.duckdb_guard import GuardedDuckdb
from eval_pipeline.sandbox.sql.errors import of_duckdb, of_sqlite
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.sandbox.sql.sqlite_guard import GuardedSqlite
from eval_pipeline.sql_equivalence.generated.references import GeneratedDatabase
from eval_pipeline.sql_equivalence.generated.values import family_of
from eval_pipeline.sql_equivalence.schema.parts import SqlColumn, quoted
from eval_pipeline.sql_equivalence.schema.schema import SqlSchema

LIMITS = SqlLimits(seconds=1.0, rows=20_000)
"""Limits of a query on a generated database."""
_MOST_KEPT = 100
_SQLITES = frozenset({type(None), int, float, str, bytes})


class Memory(Protocol):
    """An engine that holds one generated database at a time."""

    dialect: str

    def load(self, database: GeneratedDatabase) -> None:
        """Replaces all rows. Raises a SqlError."""

    def query(self, sql: str) -> SqlRows:
        """Runs a SELECT. Raises a SqlError."""


class SqliteMemory:
    """SQLite: needs a fraction of a millisecond for a database and two queries.

    The connection is kept for the next pair.
    """

    dialect = "sqlite"

    def __init__(self, schema: SqlSchema, *, case_sensitive_like: bool = False, limits: SqlLimits = LIMITS) -> None:
        """Takes a connection and creates the tables without constraints, which the rows already satisfy.

        Raises a SqlError.

        Args:
            schema: the tables.
            case_sensitive_like: whether LIKE is case-sensitive, as in DuckDB.
            limits: limits of every query.
        """
        creates = []
        for table in schema.tables:
            columns = ", ".join(f"{quoted(column.name)} {_sqlite_type(column)}" for column in table.columns)
            creates.append(f"CREATE TABLE {quoted(table.name)} ({columns})")
        self._guard = _sqlite(tuple(creates), case_sensitive_like, limits)
        self._inserts = [
            (table.name.lower(), quoted(table.name), ", ".join("?" * len(table.columns))) for table in schema.tables
        ]

    def load(self, database: GeneratedDatabase) -> None:
        """Replaces all rows."""
        connection = self._guard.connection
        self._guard.trusted = True
        try:
            with connection:
                connection.execute("BEGIN")
                for name, table, places in self._inserts:
                    connection.execute(f"DELETE FROM {table}")
                    connection.executemany(
                        f"INSERT INTO {table} VALUES ({places})",
                        [tuple(map(for_sqlite, r)) for r in database.get(name, ())],
                    )
        finally:
            self._guard.trusted = False

    def query(self, sql: str) -> SqlRows:
        """Runs a SELECT. Raises a SqlError."""
        return self._guard.query(sql)


class DuckdbMemory:
    """DuckDB: connections are expensive and kept, and so are tables from pair to pair if their columns are the same."""

    dialect = "duckdb"

    def __init__(self, schema: SqlSchema, *, alone: bool = False, limits: SqlLimits = LIMITS) -> None:
        """Takes the connection; the tables are created with the first rows, without constraints.

        Args:
            schema: schema of the databases.
            alone: whether tables of other pairs must be removed, because the queries name tables that the schema does
                not have.
            limits: limits of every query.
        """
        self._kept = _duckdb(limits)
        self._alone = alone
        self._tables = {
            table.name.lower(): ", ".join(f"{quoted(column.name)} {column.type}" for column in table.columns)
            for table in schema.tables
        }

    def load(self, database: GeneratedDatabase) -> None:
        """Replaces all rows. Raises a SqlError if DuckDB does not support a type or a value."""
        import duckdb

        kept = self._kept
        others = sorted(kept.tables.keys() - self._tables.keys())
        gone = others if self._alone or len(others) > _MOST_KEPT else []
        statements = ["BEGIN", *(f"DROP TABLE {quoted(name)}" for name in gone)]
        for name, columns in self._tables.items():
            table = quoted(name)
            if kept.tables.get(name) != columns:
                statements.append(f"CREATE OR REPLACE TABLE {table} ({columns})")
            elif name in kept.filled:
                statements.append(f"DELETE FROM {table}")
            if rows := database.get(name):
                values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
                statements.append(f"INSERT INTO {table} VALUES {values}")
        try:
            kept.guard.connection.execute("; ".join([*statements, "COMMIT"]))
        except duckdb.Error as error:
            with suppress(duckdb.Error):  # the error may have come before BEGIN
                kept.guard.connection.execute("ROLLBACK")
            raise of_duckdb(error) from error
        kept.tables = {name: columns for name, columns in kept.tables.items() if name not in gone} | self._tables
        kept.filled = kept.filled - set(gone) - self._tables.keys() | {
            name for name in self._tables if database.get(name)
        }

    def query(self, sql: str) -> SqlRows:
        """Runs a SELECT. Raises a SqlError."""
        return self._kept.guard.query(sql)


def computing(engine: str) -> Callable[[str], SqlRows]:
    """Returns a function that runs a SELECT without tables in `sqlite` or `duckdb`; it raises a SqlError."""
    return _sqlite((), False, LIMITS).query if engine == "sqlite" else _duckdb(LIMITS).guard.query


@lru_cache(maxsize=32)
def _sqlite(creates: tuple[str, ...], case_sensitive_like: bool, limits: SqlLimits) -> GuardedSqlite:
    import sqlite3

    guard = GuardedSqlite(None, limits)
    guard.trusted = True
    try:
        guard.connection.execute("PRAGMA journal_mode = OFF")
        if case_sensitive_like:
            guard.connection.execute("PRAGMA case_sensitive_like = ON")
        for statement in creates:
            guard.connection.execute(statement)
    except sqlite3.Error as error:
        raise of_sqlite(error) from error
    guard.trusted = False
    return guard


@dataclass
class _KeptDuckdb:
    """A connection with the tables of the last pairs.

    Attributes:
        guard: the connection.
        tables: their columns by table name, in lower case.
        filled: the tables that have rows.
    """

    guard: GuardedDuckdb
    tables: dict[str, str] = field(default_factory=dict)
    filled: set[str] = field(default_factory=set)


@cache
def _duckdb(limits: SqlLimits) -> _KeptDuckdb:
    return _KeptDuckdb(GuardedDuckdb(None, limits, optimizer=False))


def _sqlite_type(column: SqlColumn) -> str:
    """Returns a declared type with the affinity that the column has in a native SQLite database."""
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


def for_sqlite(value: Any) -> Any:
    """Returns a value as SQLite stores it: days and times as text."""
    if type(value) in _SQLITES:
        return value
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date):
        return value.isoformat()
    return int(value) if isinstance(value, bool) else value


def _literal(value: Any) -> str:
    """Returns a value as a DuckDB literal that the column's type accepts."""
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

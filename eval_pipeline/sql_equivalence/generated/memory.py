"""Holds generated databases in memory, in SQLite or DuckDB, to run model-written queries on them."""

from collections.abc import Callable, Sequence
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
from eval_pipeline.sql_equivalence.generated.definitions import columns_in, views_in
from eval_pipeline.sql_equivalence.generated.references import GeneratedDatabase, Row, inserted
from eval_pipeline.sql_equivalence.schema.parts import SqlTable, quoted
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
        """Takes a connection and creates the tables without constraints, which the rows already satisfy, and the views.

        Raises a SqlError.

        Args:
            schema: the tables and views.
            case_sensitive_like: whether LIKE is case-sensitive, as in DuckDB.
            limits: limits of every query.
        """
        creates = [f"CREATE TABLE {quoted(table.name)} ({columns_in(table, self.dialect)})" for table in schema.tables]
        creates += views_in(schema, self.dialect).values()
        self._guard = _sqlite(tuple(creates), case_sensitive_like, limits)
        self._inserts = [(table, *into(table)) for table in schema.tables]

    def load(self, database: GeneratedDatabase) -> None:
        """Replaces all rows."""
        connection = self._guard.connection
        self._guard.trusted = True
        try:
            with connection:
                connection.execute("BEGIN")
                for table, delete, insert in self._inserts:
                    connection.execute(delete)
                    rows = inserted(table, database.get(table.name.lower(), ()))
                    connection.executemany(insert, [tuple(map(for_sqlite, row)) for row in rows])
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
        self._schema = schema
        self._tables = {table.name.lower(): columns_in(table, self.dialect) for table in schema.tables}
        self._views = views_in(schema, self.dialect)

    def load(self, database: GeneratedDatabase) -> None:
        """Replaces all rows. Raises a SqlError if DuckDB does not support a type or a value."""
        import duckdb

        kept = self._kept
        others = sorted(kept.tables.keys() - self._tables.keys())
        clear = self._alone or len(others) > _MOST_KEPT
        gone = others if clear else [name for name in others if name in self._views]
        # A view remembers the types of what it reads.
        anew = kept.views != self._views or any(kept.tables.get(name) != made for name, made in self._tables.items())
        statements = ["BEGIN", *(f"DROP VIEW {quoted(name)}" for name in kept.views if anew)]
        statements += (f"DROP TABLE {quoted(name)}" for name in gone)
        for one, (name, columns) in zip(self._schema.tables, self._tables.items(), strict=True):
            table = quoted(name)
            if kept.tables.get(name) != columns:
                statements.append(f"CREATE OR REPLACE TABLE {table} ({columns})")
            elif name in kept.filled:
                statements.append(f"DELETE FROM {table}")
            if rows := database.get(name):
                statements.append(filled(one, rows))
        statements += self._views.values() if anew else ()
        try:
            kept.guard.connection.execute("; ".join([*statements, "COMMIT"]))
        except duckdb.Error as error:
            with suppress(duckdb.Error):  # the error may have come before BEGIN
                kept.guard.connection.execute("ROLLBACK")
            raise of_duckdb(error) from error
        kept.tables = {name: columns for name, columns in kept.tables.items() if name not in gone} | self._tables
        kept.views = self._views
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
        views: the statements that made its views, by name.
        filled: the tables that have rows.
    """

    guard: GuardedDuckdb
    tables: dict[str, str] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)
    filled: set[str] = field(default_factory=set)


@cache
def _duckdb(limits: SqlLimits) -> _KeptDuckdb:
    return _KeptDuckdb(GuardedDuckdb(None, limits, optimizer=False))


def into(table: SqlTable) -> tuple[str, str]:
    """Returns the statements that empty a table of SQLite, and that insert a row into it."""
    stored = [column for column in table.columns if not column.generated]
    columns = "" if len(stored) == len(table.columns) else f" ({', '.join(quoted(column.name) for column in stored)})"
    name = quoted(table.name)
    return f"DELETE FROM {name}", f"INSERT INTO {name}{columns} VALUES ({', '.join('?' * len(stored))})"


def filled(table: SqlTable, rows: Sequence[Row]) -> str:
    """Returns the statement that inserts rows into a table of DuckDB."""
    stored = [column for column in table.columns if not column.generated]
    columns = "" if len(stored) == len(table.columns) else f" ({', '.join(quoted(column.name) for column in stored)})"
    values = ", ".join(f"({', '.join(map(_literal, row))})" for row in inserted(table, rows))
    return f"INSERT INTO {quoted(table.name)}{columns} VALUES {values}"


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

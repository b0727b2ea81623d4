"""Holds generated databases in memory, in SQLite or DuckDB, to run model-written queries on them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache, lru_cache
from typing import Any, ClassVar

from eval_pipeline.sandbox.sql.duckdb_guard import GuardedDuckdb
from eval_pipeline.sandbox.sql.errors import of_duckdb, of_sqlite
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.sandbox.sql.sqlite_guard import GuardedSqlite
from eval_pipeline_plugins.sql_equivalence.generated.definitions import columns_in, views_in
from eval_pipeline_plugins.sql_equivalence.generated.references import GeneratedDatabase, Row, inserted
from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlTable, quoted
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema

LIMITS = SqlLimits(seconds=1.0, rows=20_000)
"""Limits of a query on a generated database."""
_MOST_KEPT = 100
_SQLITES = frozenset({type(None), int, float, str, bytes})


class Memory(ABC):
    """An engine that holds one generated database at a time, and what queries found in it.

    Attributes:
        dialect: that of its queries.
    """

    dialect: ClassVar[str]

    def __init__(self, kept: "_Kept") -> None:
        """Takes a connection, which others may use in between."""
        self._kept = kept
        self._loaded: GeneratedDatabase | None = None
        self._found: dict[str, SqlRows] = {}

    def load(self, database: GeneratedDatabase) -> None:
        """Replaces all rows, unless these are there. Raises a SqlError."""
        if self._kept.holder is self and self._loaded is database:
            return
        self._loaded, self._found = None, {}
        self._fill(database)
        self._kept.holder, self._loaded = self, database

    def query(self, sql: str) -> SqlRows:
        """Runs a SELECT, once on each database. Raises a SqlError."""
        if sql not in self._found:
            self._found[sql] = self._run(sql)
        return self._found[sql]

    @abstractmethod
    def _fill(self, database: GeneratedDatabase) -> None: ...

    @abstractmethod
    def _run(self, sql: str) -> SqlRows: ...


class SqliteMemory(Memory):
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
        kept = _sqlite(tuple(creates), case_sensitive_like, limits)
        super().__init__(kept)
        self._guard = kept.guard
        self._inserts = [(table, *into(table)) for table in schema.tables]

    def _fill(self, database: GeneratedDatabase) -> None:
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

    def _run(self, sql: str) -> SqlRows:
        return self._guard.query(sql)


class DuckdbMemory(Memory):
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
        self._place = _duckdb(limits)
        super().__init__(self._place)
        self._alone = alone
        self._schema = schema
        self._tables = {table.name.lower(): columns_in(table, self.dialect) for table in schema.tables}
        self._views = views_in(schema, self.dialect)
        self._select = cache(self._place.guard.only_select)

    def _fill(self, database: GeneratedDatabase) -> None:
        """Raises a SqlError if DuckDB does not support a type or a value."""
        import duckdb

        place, run = self._place, self._place.run
        others = sorted(place.tables.keys() - self._tables.keys())
        clear = self._alone or len(others) > _MOST_KEPT
        # A view remembers the types of what it reads.
        anew = place.views != self._views or any(place.tables.get(name) != made for name, made in self._tables.items())
        try:
            for name in list(place.views) if anew else ():
                run(f"DROP VIEW {quoted(name)}")
                del place.views[name]
            for name in others if clear else [name for name in others if name in self._views]:
                run(f"DROP TABLE {quoted(name)}")
                del place.tables[name]
            for table, (name, columns) in zip(self._schema.tables, self._tables.items(), strict=True):
                if place.tables.get(name) != columns:
                    run(f"CREATE OR REPLACE TABLE {quoted(name)} ({columns})")
                    place.tables[name] = columns
                elif name in place.filled:
                    run(f"DELETE FROM {quoted(name)}")
                place.filled.discard(name)
                if rows := database.get(name):
                    run(*insertion(table, rows))
                    place.filled.add(name)
            for name, view in self._views.items() if anew else ():
                run(view)
                place.views[name] = view
        except duckdb.Error as error:
            raise of_duckdb(error) from error

    def _run(self, sql: str) -> SqlRows:
        guard = self._place.guard
        return guard.guarded(lambda: guard.fetched(self._select(sql)), guard.limits.seconds)


def computing(engine: str) -> Callable[[str], SqlRows]:
    """Returns a function that runs a SELECT without tables in `sqlite` or `duckdb`; it raises a SqlError."""
    return _sqlite((), False, LIMITS).guard.query if engine == "sqlite" else _duckdb(LIMITS).guard.query


@lru_cache(maxsize=32)
def _sqlite(creates: tuple[str, ...], case_sensitive_like: bool, limits: SqlLimits) -> "_KeptSqlite":
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
    return _KeptSqlite(guard)


@cache
def _duckdb(limits: SqlLimits) -> "_KeptDuckdb":
    return _KeptDuckdb(GuardedDuckdb(None, limits, optimizer=False))


@dataclass
class _Kept:
    """A connection that is kept for the next pair.

    Attributes:
        holder: whose rows are in it.
    """

    holder: Memory | None = field(default=None, init=False)


@dataclass
class _KeptSqlite(_Kept):
    guard: GuardedSqlite


@dataclass
class _KeptDuckdb(_Kept):
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

    def __post_init__(self) -> None:
        self._parsed = lru_cache(maxsize=256)(self.guard.connection.extract_statements)

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Runs a statement of this project. Raises a duckdb.Error."""
        for statement in self._parsed(sql):
            self.guard.connection.execute(statement, values)


def into(table: SqlTable) -> tuple[str, str]:
    """Returns the statements that empty a table of SQLite, and that insert a row into it."""
    stored = [column for column in table.columns if not column.generated]
    columns = "" if len(stored) == len(table.columns) else f" ({', '.join(quoted(column.name) for column in stored)})"
    name = quoted(table.name)
    return f"DELETE FROM {name}", f"INSERT INTO {name}{columns} VALUES ({', '.join('?' * len(stored))})"


def insertion(table: SqlTable, rows: Sequence[Row]) -> tuple[str, list[list[Any]]]:
    """Returns the statement that inserts rows into a table of DuckDB, and its parameters: the cells of each column.

    Parameters take less time than rows in the text of the statement, which DuckDB would read anew.
    """
    stored = [column for column in table.columns if not column.generated]
    cells = list(map(list, zip(*inserted(table, rows), strict=True)))
    there = [place for place, some in enumerate(cells) if any(cell is not None for cell in some)] or [0]
    names = ", ".join(quoted(stored[place].name) for place in there)
    values = ", ".join(f"unnest(${number}::{stored[place].type}[])" for number, place in enumerate(there, 1))
    return f"INSERT INTO {quoted(table.name)} ({names}) SELECT {values}", [cells[place] for place in there]


def for_sqlite(value: Any) -> Any:
    """Returns a value as SQLite stores it: days and times as text."""
    if type(value) in _SQLITES:
        return value
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date):
        return value.isoformat()
    return int(value) if isinstance(value, bool) else value

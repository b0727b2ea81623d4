"""Lets the engine itself decide which generated databases its own definitions allow.

The parts of a schema do not say everything: partial indexes and those on expressions, collations of keys, conditions
that mean something else in another engine. Tables with such definitions are made by these, and what the engine refuses
is no database that anybody can have.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.duckdb_guard import GuardedDuckdb
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.sqlite_guard import GuardedSqlite
from eval_pipeline_plugins.sql_equivalence.generated.definitions import columns_in
from eval_pipeline_plugins.sql_equivalence.generated.memory import LIMITS, for_sqlite, insertion, into
from eval_pipeline_plugins.sql_equivalence.generated.references import GeneratedDatabase, References, Row, inserted
from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlTable, quoted
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statement

_ON_CONFLICT = re.compile(r"(?i)\bON\s+CONFLICT\s+(?:ROLLBACK|ABORT|FAIL|IGNORE|REPLACE)\b")


class Laws:
    """What the definitions of a schema's tables allow."""

    def __init__(self, schema: SqlSchema, references: References) -> None:
        """Takes the tables and their foreign keys; nothing is made before it is needed."""
        self._references = references
        self._in_sqlite = [table for table in schema.tables if table.definition and table.dialect != "duckdb"]
        self._in_duckdb = [table for table in schema.tables if table.definition and table.dialect == "duckdb"]

    def repaired(self, database: GeneratedDatabase) -> GeneratedDatabase:
        """Returns a database without the rows that SQLite refuses, and without rows that refer to those.

        DuckDB is not asked, because that would take longer than trying the queries.

        Args:
            database: its lists of rows may be replaced and are not modified.
        """
        changed = False
        for table in self._in_sqlite:
            name = table.name.lower()
            rows = database.get(name)
            try:
                kept = _sqlite(table).kept(rows) if rows else rows
            except SqlError:  # nobody can tell: see `allow`
                continue
            if rows and kept is not None and len(kept) < len(rows):
                database[name] = kept
                changed = True
        return self._references.repaired(database) if changed else database

    def allow(self, database: GeneratedDatabase) -> bool | None:
        """Returns whether the engine accepts all rows; None if nobody can tell, because it cannot make a table here."""
        try:
            for table in self._in_sqlite:
                rows = database.get(table.name.lower(), [])
                if len(_sqlite(table).kept(rows)) < len(rows):
                    return False
            return not self._in_duckdb or _duckdb_accepts(self._in_duckdb, database)
        except SqlError:
            return None


class _SqliteTable:
    """A table of SQLite with its constraints."""

    def __init__(self, table: SqlTable) -> None:
        """Makes it. Raises a SqlError if that is not possible without its database."""
        import sqlite3

        self._table = table
        self._guard = GuardedSqlite(None, LIMITS)
        self._guard.trusted = True  # no query of a model runs here
        self._delete, self._insert = into(table)
        try:
            for statement in _statements(table):
                self._guard.connection.execute(statement)
        except sqlite3.Error as error:
            raise _unmade(table, error) from error

    def kept(self, rows: Sequence[Row]) -> list[Row]:
        """Returns the rows that can be inserted one after the other."""
        import sqlite3

        connection = self._guard.connection
        values = [tuple(map(for_sqlite, row)) for row in inserted(self._table, rows)]
        connection.execute("BEGIN")
        try:
            try:
                connection.executemany(self._insert, values)
                return list(rows)
            except sqlite3.Error:
                connection.execute(self._delete)
            found = []
            for row, value in zip(rows, values, strict=True):
                try:
                    connection.execute(self._insert, value)
                    found.append(row)
                except sqlite3.Error:
                    continue
            return found
        finally:
            connection.execute("ROLLBACK")


@lru_cache(maxsize=128)
def _sqlite(table: SqlTable) -> _SqliteTable:
    return _SqliteTable(table)


def _statements(table: SqlTable) -> list[str]:
    """Returns what makes a table in SQLite; of other dialects, its unique indexes translated. Raises a SqlError."""
    if table.dialect == "sqlite":
        if table.is_virtual:
            raise _unmade(table, "its rows are not its own")
        # Rows of a conflict are refused, whatever the database would do with them.
        return [_ON_CONFLICT.sub("", statement) for statement in table.definition]
    try:
        indexes = [_index(statement, table.dialect) for statement in table.definition]
    except (SqlSyntaxError, SqlglotError) as error:
        raise _unmade(table, error) from error
    return [f"CREATE TABLE {quoted(table.name)} ({columns_in(table, 'sqlite')})", *indexes]


def _index(statement: str, dialect: str) -> str:
    """Returns a unique index in SQLite's dialect; the order of its keys does not matter."""
    tree = parse_statement(statement, dialect)
    for key in list(tree.find_all(exp.Ordered)):
        key.replace(key.this)
    return str(tree.sql(dialect="sqlite"))


def _duckdb_accepts(tables: Sequence[SqlTable], database: GeneratedDatabase) -> bool:
    """Returns whether DuckDB accepts all rows. Raises a SqlError if it cannot make the tables."""
    import duckdb

    connection = _duckdb().connection
    connection.execute("BEGIN")
    try:
        for table in tables:
            for statement in table.definition:
                try:
                    connection.execute(statement)
                except duckdb.Error as error:
                    raise _unmade(table, error) from error
        for table in tables:
            if rows := database.get(table.name.lower()):
                connection.execute(*insertion(table, rows))
    except duckdb.Error:
        return False
    finally:
        connection.execute("ROLLBACK")
    return True


@cache
def _duckdb() -> GuardedDuckdb:
    """Returns a connection without tables."""
    return GuardedDuckdb(None, LIMITS, optimizer=False)


def _unmade(table: SqlTable, why: object) -> SqlError:
    return SqlError(ErrorClass.OTHER, f"the table {table.name} cannot be made by its definition: {why}")

"""The loader's session on MySQL or MariaDB, where a schema is a database."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from eval_pipeline.core.errors import UsageError
from eval_pipeline.sandbox.sql.live.places import Server
from eval_pipeline.sandbox.sql.live.sessions import open_mysql

_MARK = "eval_loaded"
"""A table that says that the database was loaded to the end; these servers cannot make one in a transaction."""
_LOCK_S, _CHUNK = 300, 1000


class MysqlLoader:
    """See `loading.Loader`. Its role needs all rights on the databases whose names begin with `eval_`."""

    def __init__(self, server: Server, dsn: str) -> None:
        import pymysql
        from pymysql.constants import CLIENT

        self.failures = (pymysql.err.Error,)
        self._session: Any = open_mysql(server, dsn, client_flag=CLIENT.MULTI_STATEMENTS)

    def lock(self, name: str) -> None:
        """Waits for a lock, which the session holds until it ends."""
        if self._rows("SELECT GET_LOCK(%s, %s)", [name, _LOCK_S]) != [(1,)]:
            raise UsageError(f"another process has been loading {name} for {_LOCK_S} s")

    def schemas(self, beginning: str) -> Iterator[tuple[str, bool]]:
        """Yields schemas by the beginning of their names, and whether they were loaded completely."""
        query = (
            "SELECT s.schema_name, EXISTS (SELECT 1 FROM information_schema.tables t "
            "WHERE t.table_schema = s.schema_name AND t.table_name = %s) "
            "FROM information_schema.schemata s WHERE LEFT(s.schema_name, %s) = %s"
        )
        for name, loaded in self._rows(query, [_MARK, len(beginning), beginning]):
            yield name, bool(loaded)

    def create(self, schema: str) -> None:
        """Creates an empty schema and chooses it."""
        self._rows(f"CREATE DATABASE {_quoted(schema)} CHARACTER SET utf8mb4")
        self.choose(schema)

    def choose(self, schema: str) -> None:
        """Chooses the schema to which the following calls apply."""
        self._rows(f"USE {_quoted(schema)}")

    def drop(self, schema: str) -> None:
        """Drops a schema with everything in it."""
        self._rows(f"DROP DATABASE {_quoted(schema)}")

    def run(self, script: str) -> None:
        """Runs a script."""
        with self._session.cursor() as cursor:
            cursor.execute(script)
            while cursor.nextset():
                pass

    def fill(self, table: str, columns: Sequence[str], rows: Iterator[list[str | None]]) -> None:
        """Adds rows to a table."""
        names, marks = ", ".join(map(_quoted, columns)), ", ".join(["%s"] * len(columns))
        with self._session.cursor() as cursor:
            while chunk := list(islice(rows, _CHUNK)):
                cursor.executemany(f"INSERT INTO {_quoted(table).replace('%', '%%')} ({names}) VALUES ({marks})", chunk)

    def finish(self, schema: str, reader: str) -> None:
        """Gives the reader the right to read a schema, and marks it as completely loaded."""
        self._rows(f"CREATE TABLE {_quoted(schema)}.{_MARK} (at TIMESTAMP)")

    def count(self, tables: Sequence[str]) -> int:
        """Returns the number of rows of tables."""
        found = self._rows("SELECT " + " + ".join(f"(SELECT count(*) FROM {_quoted(table)})" for table in tables))
        return int(found[0][0])

    def close(self) -> None:
        """Ends the session."""
        self._session.close()

    def _rows(self, sql: str, arguments: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        with self._session.cursor() as cursor:
            cursor.execute(sql, arguments)
            return list(cursor.fetchall())


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"

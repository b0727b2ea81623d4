"""The published store as pages read it: one connection a state of the file, a cursor a request."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.ddl import quoted
from eval_pipeline.store.query import connect_read_only

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

T = TypeVar("T")
Row = dict[str, Any]

SETTINGS: Mapping[str, str | int] = {"memory_limit": "128MB", "threads": 2}
"""Of DuckDB: a page that needs more fails alone, and the machine has other things to do."""
_AT_ONCE = 4
"""Requests that query at the same time; further ones wait, so that memory is bounded."""
_SMALL, _LARGE = 200, 4
"""Things that are kept of a state of the store: small ones, and ones of some megabytes."""


class _State:
    """The store as it was published at one time.

    Attributes:
        users: requests that are reading it.
        stale: a newer one is there; closed when the last user has left.
    """

    def __init__(self, path: Path, status: tuple[int, ...] | None) -> None:
        self.status = status
        self.connection = connect_read_only(path, SETTINGS)
        self.lock = threading.Lock()
        self.users = 0
        self.stale = False
        self.remembered: dict[int, dict[object, Any]] = {_SMALL: {}, _LARGE: {}}


class Look:
    """What one request sees: always the same state of the store, whatever is published meanwhile."""

    def __init__(self, state: _State) -> None:
        self._state = state
        self._cursor = state.connection.cursor()
        self._cursor.execute("USE store")

    def rows(self, sql: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> list[Row]:
        """The rows of a query; `values` are those of its parameters. JSON columns are texts."""
        found = self._execute(sql, values)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def row(self, sql: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> Row | None:
        """The first row of a query; None where there is none."""
        return next(iter(self.rows(sql, values)), None)

    def table(self, sql: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> "pa.Table":
        """The rows of a query as Arrow, JSON columns as texts."""
        with _told():
            found = self._cursor.sql(sql, params=values or None).to_arrow_table()
        return found.cast(_plain(found.schema))

    def shadow(self, table: str, condition: str) -> None:
        """Has this request see only the rows of a table, named `r` in the condition, that meet it."""
        name = quoted(table)
        self._execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM store.main.{name} AS r WHERE {condition}", ())

    def columns(self, table: str) -> dict[str, tuple[str, str]]:
        """Type and comment of each column of a table or view; none where there is no such table."""

        def read() -> dict[str, tuple[str, str]]:
            sql = """SELECT column_name, data_type, coalesce(comment, '') FROM duckdb_columns()
                WHERE database_name = 'store' AND schema_name = 'main' AND table_name = ? ORDER BY column_index"""
            return {name: (kind, comment) for name, kind, comment in self._execute(sql, [table]).fetchall()}

        return self.remembered(("columns", table), read)

    def remembered(self, what: object, make: Callable[[], T], *, large: bool = False) -> T:
        """What was made under that name for this state of the store, else makes it.

        Args:
            what: its name.
            make: makes it.
            large: it takes megabytes, so that only a few are kept.
        """
        most = _LARGE if large else _SMALL
        kept = self._state.remembered[most]
        if what in kept:
            return cast("T", kept[what])
        made = make()
        with self._state.lock:
            while len(kept) >= most:
                kept.pop(next(iter(kept)))
            kept[what] = made
        return made

    def close(self) -> None:
        """Ends what the request was reading."""
        self._cursor.close()

    def _execute(self, sql: str, values: Mapping[str, Any] | Sequence[Any]) -> "duckdb.DuckDBPyConnection":
        with _told():
            return self._cursor.execute(sql, values) if values else self._cursor.execute(sql)


class Published:
    """The store of a home, looked at by many requests while runs publish.

    Publishing replaces the file, so a connection keeps what it has seen, and the next request opens the new one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._state: _State | None = None
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(_AT_ONCE)

    @contextmanager
    def look(self) -> Iterator[Look]:
        """The store as it is now, for the length of a request.

        Raises:
            StoreError: there is no store yet, or it cannot be opened.
        """
        with self._places:
            state = self._enter()
            try:
                found = Look(state)
                try:
                    yield found
                finally:
                    found.close()
            finally:
                self._leave(state)

    def close(self) -> None:
        """Closes the connection."""
        with self._lock:
            if self._state is not None:
                self._retire(self._state)
                self._state = None

    def _enter(self) -> _State:
        with self._lock:
            status = _status(self.path)
            if self._state is None or self._state.status != status:
                state = _State(self.path, status)
                if self._state is not None:
                    self._retire(self._state)
                self._state = state
            self._state.users += 1
            return self._state

    def _leave(self, state: _State) -> None:
        with self._lock:
            state.users -= 1
            if state.stale and not state.users:
                state.connection.close()

    def _retire(self, state: _State) -> None:
        state.stale = True
        if not state.users:
            state.connection.close()


@contextmanager
def _told() -> Iterator[None]:
    """Makes what DuckDB cannot do a sentence."""
    import duckdb

    try:
        yield
    except (duckdb.SerializationException, duckdb.IOException) as error:
        raise StoreError(f"the store cannot be read ({error}); `eval-pipeline publish --full` makes it anew") from error
    except (duckdb.CatalogException, duckdb.BinderException) as error:
        raise StoreError(
            "the store was made by another version of eval-pipeline, or lacks the tables of a package; "
            "`eval-pipeline publish --full` makes it anew"
        ) from error
    except duckdb.OutOfMemoryException as error:
        raise StoreError("that takes more memory than the workbench allows itself; filter for less") from error


def _plain(schema: "pa.Schema") -> "pa.Schema":
    """A schema without DuckDB's own kinds of text."""
    import pyarrow as pa

    return pa.schema([pa.field(field.name, getattr(field.type, "storage_type", field.type)) for field in schema])


def _status(path: Path) -> tuple[int, ...] | None:
    """What tells the file from one that has replaced it."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size

"""Read access of pages to the published store: one connection per state of the file, one cursor per request."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.system.memory import give_back_memory
from eval_pipeline.store.published.ddl import quoted
from eval_pipeline.store.published.query import connect_read_only, tell_damage

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

T = TypeVar("T")
Row = dict[str, Any]

SETTINGS: Mapping[str, str | int] = {"memory_limit": "128MB", "threads": 2}
"""DuckDB's limits: a page that needs more fails alone, and the machine keeps resources for other work."""
_AT_ONCE = 4
"""How many requests may query at the same time; others wait, so that memory stays limited."""
_SMALL, _LARGE = 200, 4
"""How many results are cached per state of the store: small ones, and ones of some megabytes."""
_REFRESH_S = 5.0
"""How old what a workbench shows of a store in a bucket may be."""


class _State:
    """The store as it was published at one time.

    Attributes:
        users: how many requests are reading it.
        stale: whether there is a newer state; then this one is closed when its last user has finished.
    """

    def __init__(self, path: Path, status: tuple[int, ...] | None) -> None:
        self.path = path
        self.status = status
        self.connection = connect_read_only(path, SETTINGS)
        self.lock = threading.Lock()
        self.users = 0
        self.stale = False
        self.remembered: dict[int, dict[object, Any]] = {_SMALL: {}, _LARGE: {}}


class StoreView:
    """One request's view of the store: always the same state, even if something is published meanwhile."""

    def __init__(self, state: _State) -> None:
        self.has_ended = False
        self._state = state
        self._cursor = state.connection.cursor()
        self._cursor.execute("USE store")

    def rows(self, sql: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> list[Row]:
        """Returns the rows of a query; `values` are its parameters. JSON columns are returned as text."""
        with _told(self._state.path):
            found = self._execute(sql, values)
            names = [column[0] for column in found.description]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def row(self, sql: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> Row | None:
        """Returns the first row of a query, or None if there is none."""
        return next(iter(self.rows(sql, values)), None)

    def table(self, sql: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> "pa.Table":
        """Returns the rows of a query as Arrow, with JSON columns as text."""
        with _told(self._state.path):
            found = self._cursor.sql(sql, params=values or None).to_arrow_table()
        return found.cast(_plain(found.schema))

    def shadow(self, table: str, condition: str) -> None:
        """Limits this request to the rows of a table that meet the condition, which refers to the table as `r`."""
        name = quoted(table)
        self._execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM store.main.{name} AS r WHERE {condition}", ())

    def has(self, table: str, column: str = "1") -> bool:
        """Whether the store has a table or view, and a column of it; one made by an older version may lack it."""
        import duckdb

        try:
            self._cursor.execute(f"SELECT {column} FROM {quoted(table)} LIMIT 0")
        except (duckdb.CatalogException, duckdb.BinderException):
            return False
        return True

    def columns(self, table: str) -> dict[str, tuple[str, str]]:
        """Returns type and comment of each column of a table or view; empty if there is no such table."""

        def read() -> dict[str, tuple[str, str]]:
            sql = """SELECT column_name, data_type, coalesce(comment, '') FROM duckdb_columns()
                WHERE database_name = 'store' AND schema_name = 'main' AND table_name = ? ORDER BY column_index"""
            return {name: (kind, comment) for name, kind, comment in self._execute(sql, [table]).fetchall()}

        return self.remembered(("columns", table), read)

    def remembered(self, what: object, make: Callable[[], T], *, large: bool = False) -> T:
        """Returns a cached result for this state of the store; computes it if there is none.

        Args:
            what: key of the result.
            make: computes it.
            large: whether it takes megabytes; only a few of these are cached.
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
        """Ends the request's read access."""
        self.has_ended = True
        self._cursor.close()

    def _execute(self, sql: str, values: Mapping[str, Any] | Sequence[Any]) -> "duckdb.DuckDBPyConnection":
        with _told(self._state.path):
            return self._cursor.execute(sql, values) if values else self._cursor.execute(sql)


class PublishedStore:
    """The store of a home, which many requests read while runs publish.

    Publishing replaces the file. An open connection therefore keeps its old state, and the next request opens the new
    one.
    """

    def __init__(self, path: Path, refresh: Callable[[], object] | None = None) -> None:
        """Opens nothing yet.

        Args:
            path: the store.
            refresh: fetches what other hosts have published; called every few seconds at most.
        """
        self.path = path
        self._refresh, self._refreshed_at = refresh, -inf
        self._state: _State | None = None
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(_AT_ONCE)

    @contextmanager
    def look(self) -> Iterator[StoreView]:
        """Opens the current store for the duration of a request.

        Raises:
            StoreError: there is no store yet, or it cannot be opened.
        """
        with self._places:
            state = self._enter()
            found = None
            try:
                found = StoreView(state)
                yield found
            finally:
                if found is None:
                    self._leave(state)
                elif not found.has_ended:
                    found.close()
                    self._leave(state)

    def make_room(self, look: StoreView) -> None:
        """Ends a request's read access early and frees the memory of the state that it reads, once no other needs it.

        For work that itself needs much memory. The next request opens the store anew.
        """
        state = look._state
        with self._lock:
            look.close()
            state.users -= 1
            if self._state is state:
                self._state = None
            self._retire(state)
        state.remembered = {_SMALL: {}, _LARGE: {}}
        give_back_memory()

    def close(self) -> None:
        """Closes the connection."""
        with self._lock:
            if self._state is not None:
                self._retire(self._state)
                self._state = None

    def _enter(self) -> _State:
        with self._lock:
            if self._refresh is not None and time.monotonic() - self._refreshed_at > _REFRESH_S:
                self._refresh()
                self._refreshed_at = time.monotonic()
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
def _told(store: Path) -> Iterator[None]:
    """Turns DuckDB's errors into sentences."""
    import duckdb

    try:
        yield
    except (duckdb.SerializationException, duckdb.IOException) as error:
        raise StoreError(f"the store cannot be read ({error}); `eval-pipeline publish --full` rebuilds it") from error
    except (duckdb.CatalogException, duckdb.BinderException) as error:
        tell_damage(store, error)
        raise StoreError(
            "the store was made by another version of eval-pipeline, or lacks the tables of a package; "
            "`eval-pipeline publish --full` rebuilds it"
        ) from error
    except duckdb.OutOfMemoryException as error:
        raise StoreError("this request takes more memory than the workbench may use; use a narrower filter") from error
    except (duckdb.Error, UnicodeDecodeError, OverflowError) as error:
        tell_damage(store, error)
        raise


def _plain(schema: "pa.Schema") -> "pa.Schema":
    """Returns the schema with DuckDB's own text types as plain text."""
    import pyarrow as pa

    return pa.schema([pa.field(field.name, getattr(field.type, "storage_type", field.type)) for field in schema])


def _status(path: Path) -> tuple[int, ...] | None:
    """Returns values that change when the file is replaced."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size

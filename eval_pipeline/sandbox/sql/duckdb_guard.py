"""A guarded DuckDB connection.

It is read-only, cannot access files, network and extensions, and has locked settings and a deadline.
"""

import threading
import time
import weakref
from collections.abc import Callable, Collection
from itertools import pairwise
from pathlib import Path
from typing import Any

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.deadline import Deadline
from eval_pipeline.sandbox.sql.errors import SqlError, of_duckdb
from eval_pipeline.sandbox.sql.limits import MIB, SqlLimits
from eval_pipeline.sandbox.sql.rows import SqlRows, fetch_within

_WATCH_S = 0.05
_SETTINGS = (
    "SET enable_external_access = false",
    # The setting above still allows `COPY … TO '<the open database>'`, also in a WITH clause of a SELECT.
    "SET disabled_filesystems = 'LocalFileSystem'",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET python_enable_replacements = false",
    "SET TimeZone = 'UTC'",
    "SET lock_configuration = true",
)


_OTHER_THAN_SELECT = frozenset(
    "alter analyze attach call checkpoint copy create deallocate delete detach drop execute explain export import "
    "insert install load merge prepare pragma reset set truncate update use vacuum".split()
)
_SLEEPS = frozenset({"sleep_ms", "pg_sleep"})  # which takes no processor time


class GuardedDuckdb:
    """A connection for model-written queries to a read-only file or to a database in memory."""

    def __init__(
        self, path: Path | None, limits: SqlLimits, *, optimizer: bool = True, copied: Path | None = None
    ) -> None:
        """Opens the connection. Raises a SqlError if there is no such database.

        Args:
            path: None for a database in memory.
            limits: limits of every query.
            optimizer: turning it off saves a third of the time for queries on a few rows.
            copied: a file whose content a database in memory begins with.
        """
        import duckdb

        self.limits = limits
        config: dict[str, str | bool | int | float | list[str]] = {
            "threads": limits.threads,
            "memory_limit": f"{max(limits.memory_bytes // 2 // MIB, 64)}MiB",
        }
        try:
            if path is None:
                self.connection = duckdb.connect(":memory:", config=config)
                if copied is not None:
                    self.connection.execute(f"ATTACH '{_escaped(copied)}' AS copied (READ_ONLY)")
                    self.connection.execute("COPY FROM DATABASE copied TO memory")
                    self.connection.execute("DETACH copied")
            else:
                self.connection = duckdb.connect(str(path), read_only=True, config=config)
            if not optimizer:
                self.connection.execute("PRAGMA disable_optimizer")
            for setting in ("SET temp_directory = ''", *_SETTINGS):
                self.connection.execute(setting)
        except duckdb.Error as error:
            raise SqlError(ErrorClass.OTHER, f"the database {path} cannot be opened: {error}") from error
        self._alarm = _Alarm(self)

    def close(self) -> None:
        """Closes the connection."""
        self._alarm.end()
        self.connection.close()

    def query(self, sql: str, seconds: float | None = None) -> SqlRows:
        """Runs one SELECT. Raises a SqlError.

        Args:
            sql: what a model wrote.
            seconds: time limit; default: that of the limits.
        """
        return self.guarded(lambda: self._selected(sql), self.limits.seconds if seconds is None else seconds)

    def guarded(self, run: Callable[[], tuple[tuple[str, ...], list[tuple[Any, ...]]]], seconds: float) -> SqlRows:
        """Returns the columns and rows that a function gets, within the time limit. Raises a SqlError."""
        import duckdb

        wall, cpu = time.perf_counter(), time.process_time()
        self._alarm.set(seconds)
        try:
            columns, rows = run()
        except (duckdb.Error, MemoryError, ValueError, RuntimeError) as error:
            raise of_duckdb(error) from error
        finally:
            self._alarm.stop()
        return SqlRows(columns, rows, time.perf_counter() - wall, time.process_time() - cpu)

    def _selected(self, sql: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        return self.fetched(self.only_select(sql))

    def fetched(self, statement: Any) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Executes a statement and fetches its rows within the limits."""
        self.connection.execute(statement)
        columns = tuple(column[0] for column in self.connection.description or ())
        return columns, fetch_within(self.connection.fetchmany, self.limits)

    def only_select(self, sql: str) -> Any:
        """Returns the one statement of a text, which is a SELECT. Raises a SqlError."""
        return self.one_of(sql, ("SELECT",), "only a SELECT may run")

    def one_of(self, sql: str, kinds: Collection[str], rule: str) -> Any:
        """Returns the one statement of a text, if DuckDB takes it for one of these kinds. Raises a SqlError."""
        statements = self.connection.extract_statements(sql)
        if not statements:
            raise SqlError(ErrorClass.SYNTAX, "there is no statement")
        if len(statements) > 1:
            raise SqlError(ErrorClass.SANDBOX, f"expected one statement, found {len(statements)}")
        try:
            kind = statements[0].type
        except ValueError as error:  # the package has no name for some kinds, such as UPDATE EXTENSIONS
            raise SqlError(ErrorClass.SANDBOX, rule) from error
        # A PIVOT whose columns the data give is several statements to DuckDB, whatever is done with its result.
        pivots = kind.name == "MULTI" and "SELECT" in kinds and not _keywords(sql) & _OTHER_THAN_SELECT
        if kind.name not in kinds and not pivots:
            raise SqlError(ErrorClass.SANDBOX, f"{rule}, not {kind.name}")
        if "sleep" in sql.lower() and _SLEEPS & _called(sql):
            raise SqlError(ErrorClass.SANDBOX, f"{' and '.join(sorted(_SLEEPS))} may not be called")
        return statements[0]


def _keywords(sql: str) -> set[str]:
    """Returns the words of a text that DuckDB takes for keywords, in lower case."""
    return {word.split()[0] for kind, word in _words(sql) if kind == "keyword"}


def _called(sql: str) -> set[str]:
    """Returns the names before an opening bracket, in lower case."""
    return {one.strip('"') for (_, one), (_, after) in pairwise(_words(sql)) if after[0] == "("}


def _words(sql: str) -> list[tuple[str, str]]:
    """Returns what DuckDB reads in a text, with the kind of each, in lower case and without comments."""
    import duckdb

    found, data = duckdb.tokenize(sql), sql.encode()  # places are those of bytes
    ends = [place for place, _ in found[1:]] + [len(data)]
    words = [
        (kind.name, data[place:end].decode(errors="replace").strip().lower())
        for (place, kind), end in zip(found, ends, strict=True)
    ]
    return [(kind, word) for kind, word in words if word and kind != "comment"]


def _escaped(path: Path) -> str:
    return str(path.resolve()).replace("'", "''")


class _Alarm:
    """Interrupts queries that take too long.

    One thread serves a connection, as one per query would be too expensive.
    """

    def __init__(self, guard: GuardedDuckdb) -> None:
        self._guard = weakref.ref(guard)  # the thread runs on and must not keep the connection alive
        self._lock = threading.Lock()
        self._running = threading.Event()
        self._deadline: Deadline | None = None
        self._ended = False
        threading.Thread(target=self._watch, daemon=True).start()

    def set(self, seconds: float) -> None:
        """Starts the timer for a query."""
        self._deadline = Deadline.after(seconds)
        self._running.set()

    def stop(self) -> None:
        """Stops the timer after the query."""
        self._running.clear()
        with self._lock:  # an interruption in progress must finish before the next query begins
            self._deadline = None

    def end(self) -> None:
        """Ends the thread: there will be no further query."""
        self._ended = True
        self._running.set()

    def _watch(self) -> None:
        while self._running.wait() and not self._ended:
            with self._lock:
                if self._deadline is not None and self._deadline.left() <= 0:
                    guard = self._guard()
                    if guard is not None:
                        guard.connection.interrupt()
                    del guard
            time.sleep(_WATCH_S)

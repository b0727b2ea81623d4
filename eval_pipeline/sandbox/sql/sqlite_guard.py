"""A guarded SQLite connection: read-only file, authorizer, deadline in the virtual machine, limited lengths."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.deadline import Deadline
from eval_pipeline.sandbox.sql.errors import SqlError, of_sqlite
from eval_pipeline.sandbox.sql.limits import MIB, SqlLimits
from eval_pipeline.sandbox.sql.rows import SqlRows, fetch_within
from eval_pipeline.sandbox.sql.sqlite_files import address_of, settled

FUNCTIONS = frozenset(
    # core
    "abs changes char coalesce concat concat_ws format glob hex ifnull iif instr length like likelihood likely "
    "lower ltrim max min nullif octet_length printf quote random randomblob replace round rtrim sign soundex "
    "substr substring total_changes trim typeof unhex unicode unistr unistr_quote unlikely upper zeroblob if "
    "subtype match regexp "
    # dates
    "date time datetime julianday unixepoch strftime timediff current_date current_time current_timestamp "
    # aggregates and windows
    "avg count group_concat string_agg sum total median percentile percentile_cont percentile_disc row_number "
    "rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value "
    # mathematics
    "acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod pi "
    "pow power radians sin sinh sqrt tan tanh trunc "
    # JSON
    "json jsonb json_array jsonb_array json_array_length json_error_position json_extract jsonb_extract "
    "json_group_array jsonb_group_array json_group_object jsonb_group_object json_insert jsonb_insert "
    "json_object jsonb_object json_patch jsonb_patch json_pretty json_quote json_remove jsonb_remove "
    "json_replace jsonb_replace json_set jsonb_set json_type json_valid -> ->> "
    # full-text search
    "bm25 highlight snippet offsets matchinfo ".split()
)
"""The functions that a query may call.

Not among them are `load_extension`, `readfile`, `edit` and any that a build adds.
"""

_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
_READ_BY_FTS5 = ("data_version", None)
"""The pragma by which a full-text index sees whether the file has changed."""
_VIRTUAL_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%'"
_STEPS = 2_000
_LONGEST_VALUE = 32 * MIB
_LONGEST_SQL = MIB


class GuardedSqlite:
    """A connection that only reads, unless its owner allows more.

    Attributes:
        trusted: set by the owner while it fills an in-memory database; never set while a model's SQL is prepared.
    """

    def __init__(self, path: Path | None, limits: SqlLimits) -> None:
        """Opens a file read-only, or a database in memory. Raises a SqlError if the file does not exist."""
        self.limits = limits
        self.trusted = False
        self._deadline, self._earliest = Deadline.after(0.0), inf
        try:
            if path is None:
                self.connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            else:
                address = address_of(settled(path))
                self.connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
        except (sqlite3.Error, OSError) as error:
            raise SqlError(ErrorClass.OTHER, f"the database {path} cannot be opened: {error}") from error
        self.connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        self.connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _LONGEST_SQL)
        self.connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        self.connection.setlimit(sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0)
        self.connection.set_authorizer(self._authorize)
        self.connection.set_progress_handler(self._late, _STEPS)
        if path is not None:
            self._open_virtual_tables()

    def _open_virtual_tables(self) -> None:
        """Lets the modules of the file's virtual tables declare them, which the authorizer takes for writing."""
        self.trusted = True
        with suppress(sqlite3.Error):  # a damaged file: the queries say so
            for (name,) in self.connection.execute(_VIRTUAL_TABLES).fetchall():
                with suppress(sqlite3.Error):  # no such module
                    self.connection.execute(f'SELECT 1 FROM "{name.replace(chr(34), chr(34) * 2)}" LIMIT 0')
        self.trusted = False

    def close(self) -> None:
        """Closes the connection."""
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
        self._deadline = Deadline.after(seconds)
        self._earliest = self._deadline.earliest
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            columns, rows = run()
        except (sqlite3.Error, sqlite3.Warning, MemoryError, OverflowError, ValueError) as error:
            raise of_sqlite(error) from error
        finally:
            self._earliest = inf
        return SqlRows(columns, rows, time.perf_counter() - wall, time.process_time() - cpu)

    def _selected(self, sql: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        cursor = self.connection.execute(sql)
        if cursor.description is None:
            raise SqlError(ErrorClass.SYNTAX, "there is no SELECT statement")
        return tuple(column[0] for column in cursor.description), fetch_within(cursor.fetchmany, self.limits)

    def _authorize(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if self.trusted or action in _ALLOWED:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_PRAGMA and (first, second) == _READ_BY_FTS5:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in FUNCTIONS:
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    def _late(self) -> int:
        return time.monotonic() > self._earliest and self._deadline.left() <= 0

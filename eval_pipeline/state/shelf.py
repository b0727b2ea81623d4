"""Where judgements are kept across runs: the port, and the file."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Protocol

from eval_pipeline.asking.journal.purging import erase
from eval_pipeline.asking.journal.rows import SQLITE_FAILURES
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.system.private import touch

_SCHEMA = """
CREATE TABLE IF NOT EXISTS judgements(
    key TEXT PRIMARY KEY NOT NULL,
    body TEXT NOT NULL,
    written_at REAL NOT NULL  -- seconds since 1970
)"""


class Shelf(Protocol):
    """Encoded judgements by key. Methods raise OSError, `SQLITE_FAILURES` or StoreError if it cannot be used.

    Attributes:
        far: whether an event loop should not wait for it.
    """

    far: bool

    @property
    def place(self) -> str:
        """Where it is, for messages."""

    def open(self, oldest: float) -> None:
        """Makes it if needed, and deletes what was written at that Unix time in seconds or before."""

    def get(self, key: str, oldest: float) -> str | None:
        """Returns what was put under the key after that time, or None."""

    def put(self, key: str, body: str, now: float) -> None:
        """Stores an encoded judgement, in the place of an older one."""

    def forget(self, oldest: float, *, dry_run: bool) -> int:
        """Deletes what was written at that Unix time in seconds or before; returns how many, 0 if it cannot."""

    def purge(self, goes: Callable[[str, str], bool], *, dry_run: bool) -> int:
        """Deletes what goes, by key and encoded judgement, without leaving its bytes; returns how many.

        Raises:
            StoreError: it cannot be used, or others read it.
        """

    def close(self) -> None:
        """Closes it; may be called repeatedly."""


class SqliteShelf:
    """A shelf in a SQLite file."""

    far = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    @property
    def place(self) -> str:
        """The path of the file."""
        return str(self._path)

    def open(self, oldest: float) -> None:
        """Creates the file if needed, and deletes old judgements."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        touch(self._path)
        self._connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=5.0)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=NORMAL")  # what a power failure loses is asked again
        self._connection.execute(_SCHEMA)
        self._connection.execute("DELETE FROM judgements WHERE written_at <= ?", (oldest,))

    def get(self, key: str, oldest: float) -> str | None:
        """Returns what was put under the key after that time, or None."""
        assert self._connection is not None
        query = "SELECT body FROM judgements WHERE key = ? AND written_at > ?"
        row = self._connection.execute(query, (key, oldest)).fetchone()
        return None if row is None else str(row[0])

    def put(self, key: str, body: str, now: float) -> None:
        """Stores an encoded judgement."""
        assert self._connection is not None
        self._connection.execute("INSERT OR REPLACE INTO judgements VALUES (?, ?, ?)", (key, body, now))

    def forget(self, oldest: float, *, dry_run: bool) -> int:
        """See `Shelf`; nothing is made if there is no file."""
        if not self._path.is_file():
            return 0
        try:
            with closing(sqlite3.connect(self._path, isolation_level=None, timeout=5.0)) as connection:
                if dry_run:
                    statement = "SELECT count(*) FROM judgements WHERE written_at <= ?"
                    return int(connection.execute(statement, (oldest,)).fetchone()[0])
                return connection.execute("DELETE FROM judgements WHERE written_at <= ?", (oldest,)).rowcount
        except SQLITE_FAILURES:
            return 0

    def purge(self, goes: Callable[[str, str], bool], *, dry_run: bool) -> int:
        """See `Shelf`; nothing is made if there is no file."""
        if not self._path.is_file():
            return 0
        try:
            with closing(sqlite3.connect(self._path, isolation_level=None, timeout=5.0)) as connection:
                rows = connection.execute("SELECT key, body FROM judgements").fetchall()
                gone = [key for key, body in rows if goes(key, body)]
                if not dry_run:
                    erase(connection, [("judgements", "key", gone)])
                return len(gone)
        except SQLITE_FAILURES as error:
            raise StoreError(
                f"cannot purge the judgements {self._path} ({error}); end the programs that use them, "
                "then run the same command again"
            ) from error

    def close(self) -> None:
        """Closes the file."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

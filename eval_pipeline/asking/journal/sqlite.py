"""The journal in a file: every model response is on disk before it is used.

SQLite in WAL mode with `synchronous=FULL`.
"""

import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from eval_pipeline.asking.batches.sqlite import SqliteBatchTable
from eval_pipeline.asking.journal.grouped import GroupedJournal
from eval_pipeline.asking.journal.rows import (
    ADD_DIGEST,
    SCHEMA,
    SQLITE_FAILURES,
    DamagedRowError,
    Row,
    insert,
    known,
    recorded,
)
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.system.private import touch

SCHEMA_VERSION = 2
_OPEN_PATIENCE_S = 10.0
_DAMAGED = (
    "is damaged; it is left as it is: run `eval-pipeline doctor --repair`, which keeps every response that is whole"
)


class SqliteJournal(GroupedJournal):
    """Responses by key, in one SQLite file.

    `get` and `contains_many` may be called from any thread. Several processes may have the file open; the first answer
    recorded under a key is kept.
    """

    def __init__(self, path: Path, *, busy_timeout_s: float = 10.0) -> None:
        """Opens the file, creating it and its folder if needed.

        Args:
            path: the file.
            busy_timeout_s: how long a commit waits for another process that is writing.
        """
        self.path = path
        self._busy_timeout_s = busy_timeout_s
        self._writing: sqlite3.Connection | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                touch(path)
            self._reader = self._connect()
            self._prepare()
        except OSError as error:
            raise StoreError(f"cannot make the journal {path}: {error.strerror}") from error
        except SQLITE_FAILURES as error:
            raise self._store_error(error) from error
        self._start()

    @property
    def place(self) -> str:
        """The path of the file."""
        return os.fspath(self.path)

    @property
    def batches(self) -> SqliteBatchTable:
        """The table of batches in the same file."""
        return SqliteBatchTable(self.path)

    def get(self, key: str) -> bytes | None:
        """Returns the body recorded under the key, or None. Raises StoreError."""
        return self.get_many([key]).get(key)

    async def find(self, key: str) -> bytes | None:
        """Returns what `get` does: the file is near, so nobody has to wait."""
        return self.get(key)

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Returns the bodies recorded under any of the keys.

        Raises:
            StoreError: the file cannot be read, or one of the rows is damaged.
        """
        try:
            return recorded(self._reader, keys)
        except SQLITE_FAILURES as error:
            raise self._store_error(error) from error
        except DamagedRowError as error:
            raise StoreError(f"the journal {self.path} {_DAMAGED} ({error})") from error

    def contains_many(self, keys: Iterable[str]) -> set[str]:
        """Returns those of the keys that are recorded. Raises StoreError."""
        try:
            return known(self._reader, list(keys))
        except SQLITE_FAILURES as error:
            raise self._store_error(error) from error

    def _connect(self) -> sqlite3.Connection:
        # The threads share the reader: SQLite itself serialises access (it is built with threadsafety 3).
        connection = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, timeout=self._busy_timeout_s
        )
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    def _prepare(self) -> None:
        """Creates the table; refuses a file written by a newer version."""
        connection = self._reader
        self._switch_to_wal()
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"the journal {self.path} was written by a newer eval-pipeline (schema {version}, this one knows "
                f"{SCHEMA_VERSION}); use that version, or set EVAL_HOME to another folder"
            )
        if version < SCHEMA_VERSION:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(SCHEMA)
            if not connection.execute("SELECT 1 FROM pragma_table_info('responses') WHERE name = 'digest'").fetchone():
                connection.execute(ADD_DIGEST)
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
            connection.execute("COMMIT")

    def _switch_to_wal(self) -> None:
        # Changing the mode does not wait for other processes that open the file at the same moment, so try again.
        give_up = time.monotonic() + min(_OPEN_PATIENCE_S, self._busy_timeout_s)
        while True:
            try:
                self._reader.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                    raise
                time.sleep(0.01)

    def _write(self, rows: list[Row]) -> list[bool]:
        self._writing = self._writing or self._connect()
        try:
            self._writing.execute("BEGIN IMMEDIATE")
            fresh = insert(self._writing, rows, int(time.time()))
            self._writing.execute("COMMIT")
        except BaseException:
            if self._writing.in_transaction:
                self._writing.execute("ROLLBACK")
            raise
        return fresh

    def _writer_ended(self) -> None:
        if self._writing is not None:
            self._writing.close()

    def _reader_ended(self) -> None:
        self._reader.close()

    def _failure(self, error: Exception) -> Exception:
        # One exception per waiter, since a shared one would collect everybody's traceback.
        if isinstance(error, SQLITE_FAILURES):
            return self._store_error(error)
        return StoreError(f"cannot write the journal {self.path}: {error!r}")

    def _store_error(self, error: Exception) -> StoreError:
        """Returns an error whose message says what is wrong with the file and what to do."""
        unreadable = sqlite3.SQLITE_CORRUPT if isinstance(error, UnicodeDecodeError) else 0
        code = getattr(error, "sqlite_errorcode", unreadable) & 0xFF
        advice = {
            sqlite3.SQLITE_CORRUPT: _DAMAGED,
            sqlite3.SQLITE_NOTADB: "is not a journal, or its first page is damaged; it is left as it is: run "
            "`eval-pipeline doctor --repair`, which keeps every response that is whole",
            sqlite3.SQLITE_FULL: "cannot grow, the disk is full; nothing recorded is lost: free some space and start "
            "the run again, it goes on where it was (`eval-pipeline doctor` tells the space left)",
            sqlite3.SQLITE_BUSY: f"was locked by another process for {self._busy_timeout_s:g} s; nothing recorded is "
            "lost: wait for that process or end it, then start the run again (`eval-pipeline doctor` tells more)",
            sqlite3.SQLITE_READONLY: "may not be written; nothing recorded is lost: check the permissions of the file "
            "and its folder (`eval-pipeline doctor` tells more)",
            sqlite3.SQLITE_CANTOPEN: "cannot be opened; check the permissions of the file and its folder "
            "(`eval-pipeline doctor` tells more)",
        }.get(code, "cannot be used; nothing recorded is lost: run `eval-pipeline doctor`")
        return StoreError(f"the journal {os.fspath(self.path)} {advice} ({error})")

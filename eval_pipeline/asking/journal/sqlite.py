"""The journal: every model response is on disk before it is used.

SQLite in WAL mode with `synchronous=FULL`. One thread writes. Appends that arrive during a commit share the next one
(group commit), so that many tasks share one fsync. Each task waits until its own row is durable.
"""

import asyncio
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from eval_pipeline.asking.journal.rows import ADD_DIGEST, SCHEMA, DamagedRowError, Row, insert, known, recorded
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.ids import json_text_hash
from eval_pipeline.core.model import Json
from eval_pipeline.core.private import touch

SCHEMA_VERSION = 2
_LARGEST_GROUP = 512
_OPEN_PATIENCE_S = 10.0
_DAMAGED = (
    "is damaged; it is left as it is: run `eval-pipeline doctor --repair`, which keeps every response that is whole"
)


def journal_key(provider: str, model: str, request: Json, sample: int, epoch: str) -> str:
    """Returns the key of a response; asking the same question again in the same epoch gives the same key.

    Mapping keys keep the provider's order, because sorting them would cost more than everything else.
    """
    return json_text_hash([provider, model, request, sample, epoch])


class _Entry(NamedTuple):
    rows: Sequence[Row]
    loop: asyncio.AbstractEventLoop
    waiter: "asyncio.Future[list[bool]]"


class Journal:
    """Responses by key, in one SQLite file.

    `append` may be awaited from any number of tasks and event loops; `get` and `contains_many` may be called from any
    thread. Several processes may have the file open; the first answer recorded under a key is kept.
    """

    def __init__(self, path: Path, *, busy_timeout_s: float = 10.0) -> None:
        """Opens the file, creating it and its folder if needed.

        Args:
            path: the file.
            busy_timeout_s: how long a commit waits for another process that is writing.
        """
        self.path = path
        self._busy_timeout_s = busy_timeout_s
        self._closed = False
        self._door = threading.Lock()  # an append is either queued before `close` or refused
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                touch(path)
            self._reader = self._connect()
            self._prepare()
        except OSError as error:
            raise StoreError(f"cannot make the journal {path}: {error.strerror}") from error
        except sqlite3.Error as error:
            raise self._store_error(error) from error
        self._waiting: deque[_Entry] = deque()
        self._signalling: set[asyncio.AbstractEventLoop] = set()  # loops that will wake the writer soon
        self._wake = threading.Event()
        self._writer = threading.Thread(target=self._write_until_closed, name="journal", daemon=True)
        self._writer.start()

    def get(self, key: str) -> bytes | None:
        """Returns the body recorded under the key, or None. Raises StoreError."""
        return self.get_many([key]).get(key)

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Returns the bodies recorded under any of the keys.

        Raises:
            StoreError: the file cannot be read, or one of the rows is damaged.
        """
        try:
            return recorded(self._reader, keys)
        except sqlite3.Error as error:
            raise self._store_error(error) from error
        except DamagedRowError as error:
            raise StoreError(f"the journal {self.path} {_DAMAGED} ({error})") from error

    def contains_many(self, keys: Iterable[str]) -> set[str]:
        """Returns those of the keys that are recorded. Raises StoreError."""
        try:
            return known(self._reader, list(keys))
        except sqlite3.Error as error:
            raise self._store_error(error) from error

    async def append(self, key: str, body: bytes) -> bool:
        """Records a body and returns when it is durable.

        Returns:
            True; or False if the key was recorded before, and the older body was kept.

        Raises:
            StoreError: the body could not be written; nothing recorded before is lost.
        """
        return (await self.append_many([(key, body)]))[0]

    async def append_many(self, rows: Sequence[Row]) -> list[bool]:
        """Records several bodies, all or none; returns for each what `append` returns. Raises StoreError."""
        if not rows:
            return []
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[list[bool]] = loop.create_future()
        with self._door:
            if self._closed:
                raise StoreError(f"the journal {self.path} is closed")
            self._waiting.append(_Entry(rows, loop, waiter))
            signalled = loop in self._signalling
            self._signalling.add(loop)
        if not signalled:
            # The writer is not woken at once, so that other tasks that are ready in this turn of the loop join the same
            # group. Waking it for the first would make groups of 4 instead of 64, and the two threads would compete for
            # the GIL.
            loop.call_soon(self._signal, loop)
        return await waiter

    def close(self) -> None:
        """Writes the waiting rows and closes the file; may be called repeatedly."""
        with self._door:
            if self._closed:
                return
            self._closed = True
        self._wake.set()
        self._writer.join()
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _signal(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._door:
            self._signalling.discard(loop)
        self._wake.set()

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

    def _write_until_closed(self) -> None:
        connection: sqlite3.Connection | None = None
        while True:
            self._wake.wait()
            self._wake.clear()
            # Read this before emptying the queue: once it is set, nothing more can enter the queue.
            closed = self._closed
            while self._waiting:
                group = self._next_group()
                try:
                    connection = connection or self._connect()
                    outcome: list[bool] | Exception = self._commit(connection, [row for e in group for row in e.rows])
                except Exception as error:  # every waiter must be told, whatever the error
                    outcome = error
                self._tell(group, outcome)
            if closed:
                if connection is not None:
                    connection.close()
                return

    def _next_group(self) -> list[_Entry]:
        """Returns the entries for one transaction: up to a maximum number of rows, but at least one entry."""
        group = [self._waiting.popleft()]
        rows = len(group[0].rows)
        while self._waiting and rows + len(self._waiting[0].rows) <= _LARGEST_GROUP:
            group.append(self._waiting.popleft())
            rows += len(group[-1].rows)
        return group

    @staticmethod
    def _commit(connection: sqlite3.Connection, group: list[Row]) -> list[bool]:
        """Writes a group in one transaction; returns for each row whether it is new."""
        try:
            connection.execute("BEGIN IMMEDIATE")
            fresh = insert(connection, group, int(time.time()))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return fresh

    def _tell(self, group: list[_Entry], outcome: "list[bool] | Exception") -> None:
        """Wakes the waiters of a group with one call for each of their event loops."""
        by_loop: dict[asyncio.AbstractEventLoop, list[_Told]] = {}
        start = 0
        for entry in group:
            end = start + len(entry.rows)
            told = outcome[start:end] if isinstance(outcome, list) else self._failure(outcome)
            by_loop.setdefault(entry.loop, []).append((entry.waiter, told))
            start = end
        for loop, told_waiters in by_loop.items():
            try:
                loop.call_soon_threadsafe(_settle, told_waiters)
            except RuntimeError:  # the loop is closed, so nobody waits any more
                continue

    def _failure(self, error: Exception) -> Exception:
        # One exception per waiter, since a shared one would collect everybody's traceback.
        if isinstance(error, sqlite3.Error):
            return self._store_error(error)
        return StoreError(f"cannot write the journal {self.path}: {error!r}")

    def _store_error(self, error: sqlite3.Error) -> StoreError:
        """Returns an error whose message says what is wrong with the file and what to do."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
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


_Told = tuple["asyncio.Future[list[bool]]", list[bool] | Exception]


def _settle(told_waiters: list[_Told]) -> None:
    for waiter, told in told_waiters:
        if waiter.done():  # cancelled while it waited; its row is kept anyway
            continue
        if isinstance(told, Exception):
            waiter.set_exception(told)
        else:
            waiter.set_result(told)

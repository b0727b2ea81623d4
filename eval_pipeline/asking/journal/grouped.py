"""Group commit: appends that arrive during a commit share the next one, so that many tasks share one fsync.

One thread writes. Each task waits until its own row is durable.
"""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Self

from eval_pipeline.asking.journal.rows import Row
from eval_pipeline.core.errors import StoreError

LARGEST_GROUP = 512


class _Entry(NamedTuple):
    rows: Sequence[Row]
    loop: asyncio.AbstractEventLoop
    waiter: "asyncio.Future[list[bool]]"


class GroupedJournal(ABC):
    """The part of a journal that collects rows into transactions; the rest says where they are kept.

    `append` may be awaited from any number of tasks and event loops.
    """

    def _start(self) -> None:
        """Starts the writing thread; called when the journal is open."""
        self._closed = False
        self._door = threading.Lock()  # an append is either queued before `close` or refused
        self._waiting: deque[_Entry] = deque()
        self._signalling: set[asyncio.AbstractEventLoop] = set()  # loops that will wake the writer soon
        self._wake = threading.Event()
        self._writer = threading.Thread(target=self._write_until_closed, name="journal", daemon=True)
        self._writer.start()

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it is, for messages."""

    @abstractmethod
    def _write(self, rows: list[Row]) -> list[bool]:
        """Writes rows in one transaction; returns for each whether it is new. Called by the writing thread only."""

    @abstractmethod
    def _failure(self, error: Exception) -> Exception:
        """Returns what one waiter is told of a failure."""

    @abstractmethod
    def _writer_ended(self) -> None:
        """Closes what `_write` has opened."""

    @abstractmethod
    def _reader_ended(self) -> None:
        """Closes what reads."""

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
                raise StoreError(f"the journal {self.place} is closed")
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
        self._reader_ended()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _signal(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._door:
            self._signalling.discard(loop)
        self._wake.set()

    def _write_until_closed(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            # Read this before emptying the queue: once it is set, nothing more can enter the queue.
            closed = self._closed
            while self._waiting:
                group = self._next_group()
                try:
                    outcome: list[bool] | Exception = self._write([row for e in group for row in e.rows])
                except Exception as error:  # every waiter must be told, whatever the error
                    outcome = error
                self._tell(group, outcome)
            if closed:
                self._writer_ended()
                return

    def _next_group(self) -> list[_Entry]:
        """Returns the entries for one transaction: up to a maximum number of rows, but at least one entry."""
        group = [self._waiting.popleft()]
        rows = len(group[0].rows)
        while self._waiting and rows + len(self._waiting[0].rows) <= LARGEST_GROUP:
            group.append(self._waiting.popleft())
            rows += len(group[-1].rows)
        return group

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


_Told = tuple["asyncio.Future[list[bool]]", list[bool] | Exception]


def _settle(told_waiters: list[_Told]) -> None:
    for waiter, told in told_waiters:
        if waiter.done():  # cancelled while it waited; its row is kept anyway
            continue
        if isinstance(told, Exception):
            waiter.set_exception(told)
        else:
            waiter.set_result(told)

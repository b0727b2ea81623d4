"""What publishing is in both forms of the store: under one lock, leaving out what is being written meanwhile."""

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.durable import locked, no_room, no_room_text, write_error
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.listing import Gate
from eval_pipeline.store.record import Record
from eval_pipeline.store.schemas import Table

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")

_REPEATED = 2
"""How often a partition is read again that was written meanwhile: a run that finds all done adds two rows to it."""


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The result of publishing.

    Attributes:
        path: the store.
        tables: names of the tables whose rows changed, in the store's order; empty if it was up to date.
        partitions_replaced: number of (table, key) pairs whose rows were added or replaced.
        partitions_removed: number of (table, key) pairs whose rows were removed because their files are gone.
        rows: number of rows added.
        full: whether the store was rebuilt from the record.
        compacted: whether free blocks were removed from the file.
        seconds: wall time, including waiting for another publisher.
        note: why the store was rebuilt without being asked to; otherwise empty.
        left_out: refused partitions with the reasons; the store keeps their previous rows, if any.
    """

    path: Path
    tables: tuple[str, ...] = ()
    partitions_replaced: int = 0
    partitions_removed: int = 0
    rows: int = 0
    full: bool = False
    compacted: bool = False
    seconds: float = 0.0
    note: str = ""
    left_out: tuple[tuple[RecordKey, str], ...] = ()


class Publisher(ABC):
    """Publishes a record once."""

    def __init__(
        self, record: Record, out: Path, track_tables: Sequence[Table], gate: Gate, *, erase: bool = False
    ) -> None:
        self._record = record
        self._erase = erase
        self._gate = gate
        self._out = out
        self._new = out.with_name(f"{out.name}.new")
        self._workspace = out.with_name(f"{out.name}.new.migrated")
        self._track_tables = track_tables

    def run(self, changed: Collection[RecordKey] | None, *, full: bool, lock_seconds: float) -> PublishResult:
        """Publishes; see `publish` for arguments and errors."""
        started = time.monotonic()
        with locked(self._out.with_name(f"{self._out.name}.lock"), lock_seconds) as lock:
            try:
                published = self._publish_settled(lock, changed, full=full)
            except OSError as error:
                raise write_error(self._out, error) from error
        return replace(published, seconds=time.monotonic() - started, left_out=self._gate.left_out)

    def _publish_settled(self, lock: int, changed: Collection[RecordKey] | None, *, full: bool) -> PublishResult:
        """Publishes, leaving out partitions that are being written all the time."""
        moved = Counter[RecordKey]()
        while True:
            try:
                return self._publish(lock, changed, full=full)
            except MovedError as error:
                moved.update(error.keys)
                # The loop ends: partitions that do not come to rest are left out.
                restless = [key for key in error.keys if moved[key] > _REPEATED]
                self._gate.close(restless, "was being written while it was published")

    @abstractmethod
    def _publish(self, lock: int, changed: Collection[RecordKey] | None, *, full: bool) -> PublishResult:
        """Publishes once. Raises MovedError if partitions were written meanwhile."""

    def _with_memory(self, limits_mb: Sequence[int], write: Callable[[int | None], T]) -> T:
        """Calls `write` with as little memory as possible: each of the limits, then none.

        Raises:
            StoreError: the disk is full, or the machine's memory is too small.
            UnusableError: DuckDB refuses for another reason.
        """
        import duckdb

        try:
            for memory_mb in limits_mb:
                try:
                    return write(memory_mb)
                except duckdb.Error as error:
                    if not _lacks_memory(error):
                        raise
            return write(None)
        except duckdb.Error as error:
            raise self._explained(error) from error

    def _explained(self, error: "duckdb.Error") -> Exception:
        message = (str(error).splitlines() or [""])[0]
        if no_room_text(str(error)):
            return no_room(self._out)
        if _lacks_memory(error):
            return StoreError(f"this machine's memory is too small to publish to {self._out} ({message})")
        return UnusableError(message)


def _lacks_memory(error: "duckdb.Error") -> bool:
    """Whether the memory limit was reached; during a commit, DuckDB raises a different exception for it."""
    import duckdb

    told = str(error)
    pinned = "failed to pin block" in told or "could not allocate block" in told
    return isinstance(error, duckdb.OutOfMemoryException) or pinned


class UnusableError(Exception):
    """DuckDB cannot use the store file, which is damaged, or rejects the new rows."""


class MovedError(Exception):
    """Files of these partitions were written while they were read."""

    def __init__(self, keys: Collection[RecordKey]) -> None:
        super().__init__(keys)
        self.keys = keys

"""The port: a table of batches, wherever the journal is kept."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from eval_pipeline.core.ids import json_hash

T = TypeVar("T")

COLUMNS = (
    "intent_id", "provider", "endpoint", "model", "model_version",
    "created_at", "custom_ids", "batch_id", "owner", "state",
)  # fmt: skip
BatchRow = Sequence[Any]
"""The values of `COLUMNS`, and a digest of them; the digest is None where 0.1.0 wrote the row."""


class BatchRows(Protocol):
    """The rows, within a transaction."""

    def all(self) -> list[BatchRow]:
        """Returns all rows, damaged or not."""

    def put(self, row: Sequence[Any]) -> None:
        """Inserts or replaces a row of `COLUMNS`, with its digest."""


class BatchTable(Protocol):
    """A table of batches. Its methods raise StoreError if it cannot be used."""

    @property
    def place(self) -> str:
        """Where it is, for messages."""

    def read(self, work: Callable[[BatchRows], T]) -> T:
        """Returns what the work finds in the rows."""

    def write(self, work: Callable[[BatchRows], T], *, paying: bool = False) -> T:
        """Does work in an exclusive transaction, which is durable when this returns.

        Args:
            work: may be repeated, so doing it twice must do no harm.
            paying: money may be spent because of it: it is refused to a run whose lease another one has.
        """

    def lives(self, owner: str) -> bool | None:
        """Whether a process is alive, on whichever host; None if the table does not know."""


def batch_digest(row: Sequence[Any]) -> str:
    """Returns the digest of a row of `COLUMNS`."""
    return json_hash(list(row))


def is_whole_batch(row: BatchRow) -> bool:
    """Whether a row is undamaged; True for rows of version 0.1.0, which have no digest."""
    return row[-1] is None or row[-1] == batch_digest(row[:-1])

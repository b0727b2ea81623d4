"""The port: what those who ask models need of a journal, wherever it is kept."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, Self

from eval_pipeline.asking.batches.table import BatchTable
from eval_pipeline.asking.journal.rows import Row
from eval_pipeline.core.ids import json_text_hash
from eval_pipeline.core.model import Json


def journal_key(provider: str, model: str, request: Json, sample: int, epoch: str) -> str:
    """Returns the key of a response; asking the same question again in the same epoch gives the same key.

    Mapping keys keep the provider's order, because sorting them would cost more than everything else.
    """
    return json_text_hash([provider, model, request, sample, epoch])


class Journal(Protocol):
    """Responses by key; the first answer recorded under a key is kept, whichever process recorded it.

    `append` may be awaited from any number of tasks and event loops; the others may be called from any thread.
    All methods raise StoreError if the journal cannot be used.
    """

    @property
    def place(self) -> str:
        """Where it is, for messages."""

    @property
    def batches(self) -> BatchTable:
        """The table of batches beside the responses."""

    def get(self, key: str) -> bytes | None:
        """Returns the body recorded under the key, or None."""

    async def find(self, key: str) -> bytes | None:
        """Returns what `get` does, without holding up the event loop if the journal is far."""

    def get_many(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Returns the bodies recorded under any of the keys. Raises StoreError if one of the rows is damaged."""

    def contains_many(self, keys: Iterable[str]) -> set[str]:
        """Returns those of the keys that are recorded."""

    async def append(self, key: str, body: bytes) -> bool:
        """Records a body and returns when it is durable; False if the key was recorded before."""

    async def append_many(self, rows: Sequence[Row]) -> list[bool]:
        """Records several bodies, all or none; returns for each what `append` returns."""

    def close(self) -> None:
        """Writes the waiting rows and closes the journal; may be called repeatedly."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

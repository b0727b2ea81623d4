"""A hash of many values in the order of their names, whatever the order in which they come, in little memory."""

import hashlib
from array import array
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.ids import canonical_json

if TYPE_CHECKING:
    import pyarrow as pa

_IN_MEMORY = 8 << 20
"""Bytes of JSON held in memory; more are kept in a temporary file."""
_AT_ONCE = 10_000
"""Names that are Python objects at once."""


class SortedHash:
    """Computes `json_hash([value, ...])` of values that are sorted by their names first."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._packed: list[pa.Array] = []
        self._ends = array("q", [0])
        self._texts = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - it lives as long as this object

    def add(self, name: str, value: Any) -> None:
        """Adds a value; names must differ."""
        text = canonical_json(value).encode()
        self._names.append(name)
        self._ends.append(self._ends[-1] + len(text))
        self._texts.write(text)
        if len(self._names) == _AT_ONCE:
            self._pack()

    def hash(self, *further: Any) -> str:
        """Returns the hash; with further values, that of `[[value, ...], *further]`. Nothing may be added after it."""
        digest = hashlib.sha256(b"[[" if further else b"[")
        for number, place in enumerate(self._order()):
            start, end = self._ends[place], self._ends[place + 1]
            self._texts.seek(start)
            digest.update((b"," if number else b"") + self._texts.read(end - start))
        for value in further:
            digest.update(b"]," + canonical_json(value).encode())
        digest.update(b"]")
        return digest.hexdigest()[:32]

    def _pack(self) -> None:
        import pyarrow as pa

        self._packed.append(pa.array(self._names, pa.string()))
        self._names = []

    def _order(self) -> list[int]:
        """Returns the places of the values, sorted by name; the order of UTF-8 bytes is that of Python's texts."""
        import pyarrow as pa
        import pyarrow.compute as pc

        self._pack()
        order: list[int] = pc.sort_indices(pa.concat_arrays(self._packed)).to_numpy().tolist()
        return order

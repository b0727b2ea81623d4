"""Numbers in the place of keys, for evaluations of a million turns: tuples in a dict would take a gigabyte."""

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.analysis.aggregates.base import Codes

_DIGEST_BYTES = 16
_ROWS = 10_000


class Coder:
    """Gives equal values equal codes, also in later calls. Codes count from 0 in the order of first occurrence."""

    def __init__(self) -> None:
        self._known: pa.Array | None = None

    def codes(self, values: pa.Array) -> Codes:
        """Returns the code of each value.

        Args:
            values: shape (N,); of the same type in every call, without NULL.
        """
        known = values.slice(0, 0) if self._known is None else self._known
        new = pc.unique(values.filter(pc.invert(pc.is_in(values, value_set=known))))
        self._known = pa.concat_arrays([known, new])
        codes: Codes = pc.index_in(values, value_set=self._known).to_numpy(zero_copy_only=False).astype(np.int64)
        return codes


def digests(table: pa.Table, columns: Sequence[str]) -> pa.Array:
    """Returns a digest of the columns of each row; equal digests mean equal values (BLAKE2b with 128 bits)."""
    made = []
    for start in range(0, table.num_rows, _ROWS):  # so that few of the rows are Python's objects at a time
        rows = zip(*(table[name].slice(start, _ROWS).to_pylist() for name in columns), strict=True)
        found = [hashlib.blake2b(repr(row).encode(), digest_size=_DIGEST_BYTES).digest() for row in rows]
        made.append(pa.array(found, pa.binary(_DIGEST_BYTES)))
    return pa.concat_arrays(made) if made else pa.array([], pa.binary(_DIGEST_BYTES))

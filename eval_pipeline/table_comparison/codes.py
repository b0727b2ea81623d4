"""Codes of values: equal ones have one code.

The code of a number is the bits of the float that equals it; a text has its hash; other values are numbered by `Keys`
among the codes that no float has.
"""

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from eval_pipeline.table_comparison.cells import key_of

if TYPE_CHECKING:
    import numpy as np

    Codes = np.ndarray[Any, np.dtype[np.int64]]
    Hashes = np.ndarray[Any, np.dtype[np.uint64]]

EXACT_UP_TO = 2**53
NONE_CODE = -1
EMPTY_CODE = -2
"""Of the empty text, whose hash is 0, as are the bits of the number 0."""
_SOME = 2_000


class Keys(dict[Any, int]):
    """Codes of keys other than texts and plain numbers, in the order in which they are first asked for."""

    def __init__(self) -> None:
        super().__init__()
        self[None], self[""] = NONE_CODE, EMPTY_CODE
        self.of_cells = _Cells(self)

    def __missing__(self, key: Any) -> int:
        # As floats, small negative integers are not numbers, so that no number has such a code.
        code = self[key] = -1 - len(self)
        return code

    def code(self, key: Any) -> int:
        """Returns the code of any key."""
        if isinstance(key, str):
            return hash(key) or EMPTY_CODE
        if isinstance(key, int | float | Decimal) and -EXACT_UP_TO < key < EXACT_UP_TO:
            number = float(key)
            return _bits(number) if number == key else self[key]
        return self[key]


class _Cells(dict[Any, int]):
    """Codes of cells by the cells."""

    def __init__(self, keys: Keys) -> None:
        super().__init__()
        self._keys = keys

    def __missing__(self, cell: Any) -> int:
        code = self[cell] = self._keys.code(key_of(cell))
        return code


def _bits(number: float) -> int:
    import numpy as np

    return int(np.float64(number + 0.0).view(np.int64))


def distinct(codes: Any) -> Any:
    """Returns numbers without repeats, ascending."""
    import numpy as np

    found = np.sort(codes)
    return found[np.concatenate(([True], found[1:] != found[:-1]))] if len(found) else found


def common(one: Any, other: Any) -> float:
    """Returns how many numbers two arrays as `distinct` returns them have in common, about so many of long ones."""
    import numpy as np

    few, many = sorted((one, other), key=len)
    some = few[:: len(few) // _SOME + 1]
    found = many[np.searchsorted(many, some).clip(0, len(many) - 1)] == some
    return float(found.mean() * len(few)) if len(few) else 0.0


def mixed(codes: Any, salt: int = 0) -> "Hashes":
    """Returns 64-bit hashes of numbers (splitmix64, Steele, Lea and Flood 2014)."""
    import numpy as np

    # Arrays of unsigned numbers wrap around, which is what is wanted.
    found = codes.view(np.uint64) + np.uint64((salt + 1) * 0x9E3779B97F4A7C15 % 2**64)
    found ^= found >> np.uint64(30)
    found *= np.uint64(0xBF58476D1CE4E5B9)
    found ^= found >> np.uint64(27)
    found *= np.uint64(0x94D049BB133111EB)
    found ^= found >> np.uint64(31)
    result: Hashes = found
    return result

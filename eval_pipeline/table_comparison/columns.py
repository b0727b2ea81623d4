"""A column of a table as numbers: equal cells have one code.

So whole columns are compared without a look at single cells.
"""

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from eval_pipeline.table_comparison.cells import (
    MAY_BE_DATE,
    NAN,
    NULL_WORDS,
    NUMBER,
    is_slashed,
    key_of,
    moment_in,
    relaxed_key,
)
from eval_pipeline.table_comparison.codes import EMPTY_CODE, EXACT_UP_TO, NONE_CODE, Keys, mixed
from eval_pipeline.table_comparison.numbers import most_decimals
from eval_pipeline.table_comparison.relaxations import OF_TEXTS, Relaxation, Set
from eval_pipeline.table_comparison.table import ComparedTable, Row

if TYPE_CHECKING:
    import numpy as np

    Codes = np.ndarray[Any, np.dtype[np.int64]]
    Hashes = np.ndarray[Any, np.dtype[np.uint64]]

_TEXTS = frozenset({str, type(None)})
_NUMBERS = frozenset({int, bool, float, type(None)})
_NEVER_NUMBERS = frozenset({str, date, datetime, type(None)})
_NEVER_TEXTS = frozenset({int, bool, Decimal, date, type(None)})
_AT_ONCE = 10_000
"""Cells of some rows that are coded together: so many stay in the cache of a processor while they are read."""
_BETWEEN = "\0"
_SPACED = re.compile(rf"[^\S ]|{_BETWEEN} | {_BETWEEN}|  ")
_NUMBERS_FROM = 1 << 40
_SPREAD = 18
_DIGIT = re.compile(r"\d", re.ASCII)
# In all texts of a column at once, each between two marks.
_NULL_WORD = re.compile(f"{_BETWEEN}(?:{'|'.join(map(re.escape, sorted(NULL_WORDS)))}){_BETWEEN}", re.IGNORECASE)
_NUMBER = re.compile(f"{_BETWEEN}(?:{NUMBER.pattern})(?: ?%)?{_BETWEEN}", NUMBER.flags)
_SHOWN = re.compile(r"\s*[-+]?[\d,]*\.(\d+)\s*%?\s*", re.ASCII)
_DATE = re.compile(f"{_BETWEEN}(?:{MAY_BE_DATE.pattern})", MAY_BE_DATE.flags)


def columns_of(table: ComparedTable, keys: Keys) -> "list[ComparedColumn]":
    """Returns the columns of a table."""
    found = [ComparedColumn(keys, table.rows, place) for place in range(len(table.columns))]
    some = _AT_ONCE // max(len(found), 1) + 1
    for start in range(0, len(table.rows), some):
        for column, cells in zip(found, zip(*table.rows[start : start + some], strict=True), strict=True):
            column.add(cells)
    return found


class ComparedColumn:
    """A column, as it stands and under relaxations of the form of its cells."""

    def __init__(self, keys: Keys, rows: Sequence[Row], place: int) -> None:
        self._keys, self._rows, self._place = keys, rows, place
        self._types: set[type] = set()
        self._parts: list[Codes] = []
        self._relaxed: dict[tuple[Set, bool], ComparedColumn] = {}
        self._bags: dict[bool, int] = {}
        self._shown = 0  # decimals of each of its numbers, zeros at their end too, which only texts have
        self._plain = True  # whether it has numbers only, all of them floats

    def add(self, cells: Sequence[Any]) -> None:
        """Adds the codes of the next cells."""
        types = set(map(type, cells))
        self._types |= types
        found = self._texts(cells, types) if types <= _TEXTS else self._numeric(cells, types)
        if found is None or str in types:
            self._plain = False
        self._parts.append(self._others(cells) if found is None else found)

    @cached_property
    def codes(self) -> "Codes":
        """The codes of the cells."""
        import numpy as np

        found = np.concatenate(self._parts) if self._parts else np.empty(0, np.int64)
        self._parts.clear()
        return found

    @property
    def has_forms(self) -> bool:
        """Whether its cells may have forms that can be overlooked, as texts have, and what is no number."""
        return not self._plain and not self._types <= _NEVER_TEXTS

    def _texts(self, cells: Sequence[Any], types: set[type]) -> "Codes":
        import numpy as np

        codes = np.fromiter(map(hash, cells), np.int64, len(cells))
        codes[codes == 0] = EMPTY_CODE
        if type(None) in types:
            codes[codes == hash(None)] = NONE_CODE
        return codes

    def _numeric(self, cells: Sequence[Any], types: set[type]) -> "Codes | None":
        """Returns the codes of numbers; None if there is something that a float may not hold."""
        import numpy as np

        if not types <= _NUMBERS:
            return None
        missing = cells.count(None) if type(None) in types else 0
        try:
            # None becomes NaN in an array.
            numbers = np.array(cells, np.float64) if missing else np.fromiter(cells, np.float64, len(cells))
        except OverflowError:
            return None
        if np.count_nonzero(np.abs(numbers) < EXACT_UP_TO) != len(cells) - missing:
            return None
        codes: Codes = (numbers + 0.0).view(np.int64)  # zero has no sign
        if missing:
            codes[np.isnan(numbers)] = NONE_CODE
        return codes

    def _others(self, cells: Sequence[Any]) -> "Codes":
        import numpy as np

        try:
            return np.fromiter(map(self._keys.of_cells.__getitem__, cells), np.int64, len(cells))
        except TypeError:  # lists and dicts
            return np.fromiter((self._keys.code(key_of(cell)) for cell in cells), np.int64, len(cells))

    @cached_property
    def values(self) -> dict[int, Any]:
        """The key of each code."""
        cells = [row[self._place] for row in self._rows]
        if self._types <= _TEXTS:
            return {self._keys.code(cell): cell for cell in set(cells)}
        return dict(zip(self.codes.tolist(), map(key_of, cells), strict=True))

    @cached_property
    def active(self) -> Set:
        """Relaxations of the form of cells that make a difference to one of them."""
        values = list(self.values.values()) if self.has_forms else []
        found = {Relaxation.NULLS} if float in self._types and NAN in values else set()
        texts = [key for key in values if isinstance(key, str)]
        if not texts:
            return frozenset(found)
        joined = _BETWEEN + _BETWEEN.join(texts) + _BETWEEN
        if _SPACED.search(joined):
            found.add(Relaxation.WHITE_SPACE)
            texts = [" ".join(text.split()) for text in texts]
        if joined.casefold() != joined:
            found.add(Relaxation.CASE)
        joined = _BETWEEN + _BETWEEN.join(texts) + _BETWEEN
        if _NULL_WORD.search(joined):
            found.add(Relaxation.NULLS)
        if _DIGIT.search(joined):
            if "%" in joined:
                found.add(Relaxation.PERCENT)
            if _NUMBER.search(joined):
                found.add(Relaxation.TEXT_NUMBERS)
            if _DATE.search(joined) and (self.has_slashes or any(map(moment_in, texts))):
                found.add(Relaxation.DATES)
        return frozenset(found)

    @cached_property
    def has_slashes(self) -> bool:
        """Whether some of its cells are dates with slashes, in which the month or the day is first."""
        return str in self._types and any(
            isinstance(key, str) and "/" in key and is_slashed(key.strip()) for key in self.values.values()
        )

    def readings(self, overlooked: Set) -> "list[ComparedColumn]":
        """Returns the column as `relaxed` does, and with days before months, if it has dates with slashes."""
        if Relaxation.DATES in overlooked and self.has_slashes:
            return [self.relaxed(overlooked), self.relaxed(overlooked, day_first=True)]
        return [self.relaxed(overlooked)]

    def relaxed(self, overlooked: Set, *, day_first: bool = False) -> "ComparedColumn":
        """Returns the column with what is overlooked in the form of its cells taken away."""
        import numpy as np

        if not overlooked & OF_TEXTS or not (overlooked := overlooked & self.active):
            return self
        if (overlooked, day_first) not in self._relaxed:
            keys = [relaxed_key(self.values[code], overlooked, day_first=day_first) for code in self.distinct.tolist()]
            codes = np.fromiter(map(self._keys.code, keys), np.int64, len(keys))
            found = ComparedColumn(self._keys, (), 0)
            found._types, found._plain = set(map(type, keys)), False
            found.codes = codes[self.places]
            found.values = dict(zip(codes.tolist(), keys, strict=True))
            found._shown = min((_decimals_of(self.values[code]) for code in self.distinct.tolist()), default=0)
            self._relaxed[overlooked, day_first] = found
        return self._relaxed[overlooked, day_first]

    @cached_property
    def _counted(self) -> tuple["Codes", Any]:
        import numpy as np

        found = np.sort(self.codes)
        starts = np.flatnonzero(np.concatenate(([True], found[1:] != found[:-1]))[: len(found)])
        return found[starts], np.diff(starts, append=len(found))

    @property
    def distinct(self) -> "Codes":
        """The codes without repeats, ascending."""
        return self._counted[0]

    @property
    def counts(self) -> Any:
        """How often each of `distinct` is there."""
        return self._counted[1]

    @cached_property
    def places(self) -> Any:
        """For each cell the place of its code in `distinct`."""
        import numpy as np

        found = np.empty(len(self.codes), np.int64)
        found[np.argsort(self.codes)] = np.repeat(np.arange(len(self.distinct)), self.counts)
        return found

    @cached_property
    def spread(self) -> Any:
        """The least number, the greatest and some between, with repeats."""
        import numpy as np

        codes, numbers = self.numbers
        ends = np.cumsum(self.counts[np.searchsorted(self.distinct, codes)])
        if not len(ends):
            return np.empty(0)
        ranks = np.linspace(0, int(ends[-1]) - 1, _SPREAD).astype(np.int64)
        return np.concatenate(([len(self.codes) - int(ends[-1])], numbers[np.searchsorted(ends, ranks, side="right")]))

    def recoded(self, found: Any) -> "Codes":
        """Returns the codes without repeats, in their order, with other codes for its numbers."""
        import numpy as np

        codes: Codes = self.distinct.copy()
        codes[np.searchsorted(codes, self.numbers[0])] = found + _NUMBERS_FROM
        return codes

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The least code and the greatest."""
        return (int(self.codes.min()), int(self.codes.max())) if len(self.codes) else (0, 0)

    def same(self, other: "ComparedColumn", *, once: bool) -> bool:
        """Returns whether both have the same cells as multisets, or as sets if `once`."""
        if self.ends != other.ends:
            return False
        return self._bag(once=False) == other._bag(once=False) or (
            once and self._bag(once=True) == other._bag(once=True)
        )

    def _bag(self, *, once: bool) -> int:
        """Returns a hash of the cells."""
        if once not in self._bags:
            self._bags[once] = int(mixed(self.distinct if once else self.codes).sum())
        return self._bags[once]

    @cached_property
    def content(self) -> int:
        """A hash of the cells in their order."""
        import numpy as np

        return int((mixed(self.codes) * (2 * np.arange(len(self.codes), dtype=np.uint64) + np.uint64(1))).sum())

    @cached_property
    def numbers(self) -> tuple["Codes", Any]:
        """The codes of its distinct numbers, and these numbers, ascending."""
        import numpy as np

        if self._types <= _NEVER_NUMBERS:
            return np.empty(0, np.int64), np.empty(0, np.float64)
        codes = self.distinct
        if self._plain:
            codes = codes[codes != NONE_CODE]
            numbers = codes.view(np.float64)
        else:
            held = [(code, float(key)) for code, key in self.values.items() if _is_number(key)]
            codes = np.array([code for code, _ in held], np.int64)
            numbers = np.array([number for _, number in held], np.float64)
        order = np.argsort(numbers, kind="stable")
        return codes[order], numbers[order]

    @property
    def floats(self) -> Any:
        """The numbers of the cells; NaN where there is none."""
        import numpy as np

        found = np.full(len(self.distinct), np.nan)
        found[np.searchsorted(self.distinct, self.numbers[0])] = self.numbers[1]
        return found[self.places]

    @cached_property
    def decimals(self) -> int | None:
        """How many decimals its numbers have at most; None if too many."""
        found = most_decimals(self.numbers[1])
        return None if found is None else max(found, self._shown)

    @cached_property
    def exact(self) -> bool:
        """Whether none of its numbers is a float."""
        return float not in self._types


def _decimals_of(key: Any) -> int:
    """Returns how many decimals a text shows if it is a number; 0 of anything else."""
    told = _SHOWN.fullmatch(key) if isinstance(key, str) else None
    return len(told[1]) if told is not None else 0


def _is_number(key: Any) -> bool:
    """Returns whether it is a number that may be close to another, which a large integer is only to itself."""
    return isinstance(key, float | Decimal) or (isinstance(key, int) and abs(key) < EXACT_UP_TO)

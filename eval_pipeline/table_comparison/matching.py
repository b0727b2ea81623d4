"""Finds columns of one table for those of another, so that the rows agree as well, under given relaxations.

Cells are numbers here: equal cells have one. A column is an array of them; the rows under some columns are sums of
64-bit hashes, one for each column and cell, so that a column is added or taken away in one step.
"""

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from operator import ne
from typing import TYPE_CHECKING, Any

from eval_pipeline.table_comparison.cells import PLAIN, key_of, relaxed_key
from eval_pipeline.table_comparison.numbers import matches
from eval_pipeline.table_comparison.relaxations import OF_NUMBERS, OF_TEXTS, Relaxation, Set
from eval_pipeline.table_comparison.table import Row, Table

if TYPE_CHECKING:
    import numpy as np

    Codes = np.ndarray[Any, np.dtype[np.int64]]
    Hashes = np.ndarray[Any, np.dtype[np.uint64]]

_SMALL = 20_000
"""Cells of a table that is small enough to ask of every column what relaxations make of it."""
_MOST_STEPS = 3_000
_MOST_STEPS_OF_BOTH = 100
_MOST_CELLS = 5_000_000
_NUMBERS_FROM = 1 << 40
_EXACT_UP_TO = 2**53


@dataclass(frozen=True, slots=True)
class Fit:
    """How two tables are equal.

    Attributes:
        columns: for each expected column the place of the generated one; None if it is missing.
        decimals: the least number of decimals that a column was rounded to; None if none was.
    """

    columns: tuple[int | None, ...]
    decimals: int | None = None


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A generated column with the cells of an expected one, and the codes in which they are equal."""

    place: int
    generated: "Codes"
    expected: "Codes"
    decimals: int | None = None


class _Keys(dict[Any, int]):
    """Numbers keys in the order in which they are first asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.values_in_order: list[Any] = []

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self)
        self.values_in_order.append(key)
        return number


class _Column:
    """A column, under any relaxations of the form of cells."""

    def __init__(self, keys: _Keys, cells: Row) -> None:
        self._keys, self._cells = keys, cells
        self._codes: dict[Set, Codes] = {}
        self._bags: dict[tuple[Set, bool], int] = {}
        self._numbers: dict[Set, tuple[Codes, Any, bool]] = {}

    def codes(self, overlooked: Set) -> "Codes":
        """Returns the numbers of the cells' keys."""
        import numpy as np

        overlooked &= self.active
        found = self._codes.get(overlooked)
        if found is None:
            if not overlooked:
                found = np.fromiter(map(self._keys.__getitem__, self._plain()), np.int64, len(self._cells))
            else:
                distinct, places = self._distinct
                keys = self._keys
                relaxed = [keys[relaxed_key(keys.values_in_order[code], overlooked)] for code in distinct.tolist()]
                found = np.array(relaxed, np.int64)[places]
            self._codes[overlooked] = found
        return found

    def _plain(self) -> Sequence[Any]:
        types = set(map(type, self._cells))
        if types <= PLAIN or (types <= PLAIN | {float} and not any(map(ne, self._cells, self._cells))):
            return self._cells
        return [key_of(cell) for cell in self._cells]

    @cached_property
    def _distinct(self) -> tuple["Codes", "Codes"]:
        import numpy as np

        return np.unique(self._codes[frozenset()], return_inverse=True)

    @cached_property
    def active(self) -> Set:
        """Relaxations of the form of cells that make a difference to one of them."""
        if not self._codes:
            self.active = frozenset()  # while the first codes are made
            self.codes(frozenset())
            del self.active
        values = self._keys.values_in_order
        texts = [key for code in self._distinct[0].tolist() if isinstance(key := values[code], str | tuple)]
        spaces = frozenset({Relaxation.WHITE_SPACE})
        spaced = [relaxed_key(text, spaces) for text in texts]
        found = {one for one in OF_TEXTS - spaces if any(relaxed_key(text, {one}) != text for text in spaced)}
        return frozenset(found | (spaces if spaced != texts else spaces & found))

    def bag(self, overlooked: Set, *, once: bool) -> int:
        """Returns a hash of the cells as a multiset, as a set if `once`."""
        import numpy as np

        key = (overlooked, once)
        if key not in self._bags:
            codes = self.codes(overlooked)
            self._bags[key] = int(mixed(np.unique(codes) if once else codes).sum())
        return self._bags[key]

    @cached_property
    def content(self) -> int:
        """A hash of the cells in their order."""
        import numpy as np

        codes = self.codes(frozenset())
        return int((mixed(codes) * (2 * np.arange(len(codes), dtype=np.uint64) + np.uint64(1))).sum())

    @cached_property
    def has_floats(self) -> bool:
        """Whether a number of it is a float."""
        return float in set(map(type, self._cells))

    def numbers(self, overlooked: Set) -> tuple["Codes", Any, bool]:
        """Returns codes of its distinct numbers, ascending; the numbers; and whether none of them is a float."""
        import numpy as np

        overlooked &= self.active
        if overlooked not in self._numbers:
            values = self._keys.values_in_order
            held = []
            floats = self.has_floats
            for code in np.unique(self.codes(overlooked)).tolist():
                key = values[code]
                if isinstance(key, float | Decimal) or (isinstance(key, int) and abs(key) < _EXACT_UP_TO):
                    held.append((float(key), code))
                    floats = floats or (isinstance(key, float) and bool(overlooked))
            held.sort()
            codes, numbers = np.array([code for _, code in held], np.int64), np.array([n for n, _ in held], np.float64)
            self._numbers[overlooked] = codes, numbers, not floats
        return self._numbers[overlooked]


def mixed(codes: Any, salt: int = 0) -> "Hashes":
    """Returns 64-bit hashes of numbers (splitmix64, Steele, Lea and Flood 2014)."""
    import numpy as np

    # numpy's arrays of unsigned numbers wrap around, which is what is wanted.
    found = codes.astype(np.uint64) + np.uint64((salt + 1) * 0x9E3779B97F4A7C15 % 2**64)
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: Hashes = found ^ (found >> np.uint64(31))
    return result


class Trial:
    """Two tables that are compared under one set of relaxations after another."""

    def __init__(self, generated: Table, expected: Table) -> None:
        keys = _Keys()
        self.generated, self.expected = generated, expected
        self._mine = [_Column(keys, cells) for cells in generated.cells()]
        self._theirs = [_Column(keys, cells) for cells in expected.cells()]
        self._fits: dict[Set, Fit | None] = {}
        self._pairs: dict[tuple[int, int, Set, bool], list[_Candidate]] = {}
        cells = max(len(generated.rows) * len(generated.columns), len(expected.rows) * len(expected.columns))
        self._small = cells <= _SMALL

    @cached_property
    def _turned(self) -> "Trial | None":
        """The same trial of a row instead of a column, or the other way round, if that gives the expected form."""
        mine = len(self.generated.rows), len(self.generated.columns)
        theirs = len(self.expected.rows), len(self.expected.columns)
        if mine == theirs or mine[::-1] != theirs or 1 not in mine:
            return None
        return Trial(self.generated.transposed(), self.expected)

    @cached_property
    def relevant(self) -> Set:
        """The relaxations that may make a difference to these tables."""
        wide = len(self.generated.columns) > 1, len(self.expected.columns) > 1
        long = len(self.generated.rows) > 1 or len(self.expected.rows) > 1
        found = {
            Relaxation.EXTRA_COLUMNS: wide[0],
            Relaxation.MISSING_COLUMNS: wide[1],
            Relaxation.COLUMN_NAMES: any(wide) or self.generated.columns != self.expected.columns,
            Relaxation.COLUMN_ORDER: any(wide),
            Relaxation.DUPLICATES: long,
            Relaxation.ROW_ORDER: long and self.expected.ties is not None,
            Relaxation.TIE_ORDER: long and self.expected.ties is not None,
            Relaxation.SHAPE: self.generated.shape != self.expected.shape or self._turned is not None,
        }
        none: Set = frozenset()
        bags = [{column.bag(none, once=False) for column in side} for side in (self._mine, self._theirs)]
        numbers = True
        for side, others in ((self._mine, bags[1]), (self._theirs, bags[0])):
            odd = [column for column in side if self._small or column.bag(none, once=False) not in others]
            for column in odd:
                found.update(dict.fromkeys(column.active, True))
            texts = frozenset({Relaxation.TEXT_NUMBERS, Relaxation.PERCENT, Relaxation.WHITE_SPACE})
            numbers = numbers and any(len(column.numbers(texts)[0]) for column in odd)
        if numbers:
            found.update(dict.fromkeys(OF_NUMBERS, True))
        chosen = {one for one, may in found.items() if may}
        return frozenset(chosen | (self._turned.relevant if self._turned is not None else set()))

    def fit(self, overlooked: Set) -> Fit | None:
        """Returns how the tables are equal if this is overlooked; None if they are not."""
        if overlooked not in self._fits:
            self._fits[overlooked] = self._fit(overlooked)
        return self._fits[overlooked]

    def _fit(self, overlooked: Set) -> Fit | None:
        mine, theirs = self.generated, self.expected
        if mine.shape != theirs.shape and Relaxation.SHAPE not in overlooked:
            return None
        if self._turned is not None and Relaxation.SHAPE in overlooked:
            fit = self._turned.fit(overlooked)
            if fit is not None:
                return fit
        if len(mine.rows) != len(theirs.rows) and (
            Relaxation.DUPLICATES not in overlooked or not mine.rows or not theirs.rows
        ):
            return None
        if len(mine.columns) > len(theirs.columns) and Relaxation.EXTRA_COLUMNS not in overlooked:
            return None
        if len(mine.columns) < len(theirs.columns) and Relaxation.MISSING_COLUMNS not in overlooked:
            return None
        if not theirs.columns or not mine.columns:
            return Fit((None,) * len(theirs.columns)) if mine.columns == theirs.columns else None
        fit = self._assigned(overlooked, every=False)
        if fit is None and self._small:
            fit = self._assigned(overlooked, every=True)
        return fit

    def _assigned(self, overlooked: Set, *, every: bool) -> Fit | None:
        candidates = self._candidates(overlooked, every=every)
        optional = Relaxation.MISSING_COLUMNS in overlooked
        if not optional and not all(candidates):
            return None
        return _Search(self, candidates, overlooked).run()

    def _candidates(self, overlooked: Set, *, every: bool) -> list[list[_Candidate]]:
        """Returns for each expected column the generated ones with the same cells: of its name first, then its place.

        Unless `every`, a column that has one with the same cells as they stand has no others.
        """
        fixed = not overlooked & {
            Relaxation.COLUMN_ORDER,
            Relaxation.EXTRA_COLUMNS,
            Relaxation.MISSING_COLUMNS,
        }
        once = Relaxation.DUPLICATES in overlooked
        none: Set = frozenset()
        found = []
        for there, (column, name) in enumerate(zip(self._theirs, self.expected.columns, strict=True)):
            places = (
                [there]
                if fixed
                else sorted(
                    range(len(self._mine)),
                    key=lambda here: (self.generated.columns[here] != name, here != there),
                )
            )
            places = [here for here in places if self._named(here, name, overlooked)]
            bag = column.bag(none, once=once)
            same = [here for here in places if self._mine[here].bag(none, once=once) == bag]
            if same and not every:
                places = same
            found.append([one for here in places for one in self._pair(here, there, overlooked, once=once)])
        return found

    def _named(self, here: int, name: Hashable, overlooked: Set) -> bool:
        if Relaxation.COLUMN_NAMES in overlooked or self.generated.columns[here] == name:
            return True
        # A list and a single value have no names.
        unnamed = self.generated.columns[here] is None or name is None
        return unnamed and Relaxation.SHAPE in overlooked

    def _pair(self, here: int, there: int, overlooked: Set, *, once: bool) -> list[_Candidate]:
        """Returns the ways in which two columns have the same cells."""
        mine, theirs = self._mine[here], self._theirs[there]
        texts = overlooked & OF_TEXTS & (mine.active | theirs.active if overlooked & OF_TEXTS else overlooked)
        key = (here, there, texts | (overlooked & OF_NUMBERS), once)
        if key not in self._pairs:
            self._pairs[key] = list(self._ways(here, mine, theirs, key[2], once=once))
        return self._pairs[key]

    @staticmethod
    def _ways(here: int, mine: _Column, theirs: _Column, overlooked: Set, *, once: bool) -> Iterator[_Candidate]:
        import numpy as np

        texts = overlooked & OF_TEXTS
        none: Set = frozenset()
        if mine.bag(none, once=once) == theirs.bag(none, once=once):
            yield _Candidate(here, mine.codes(none), theirs.codes(none))
            texts &= mine.active
            if not texts:
                return
        if texts and mine.bag(texts, once=once) == theirs.bag(texts, once=once):
            yield _Candidate(here, mine.codes(texts), theirs.codes(texts))
            return
        places, numbers, exact = mine.numbers(texts)
        others, expected, exact_too = theirs.numbers(texts)
        for match in matches(numbers, expected, exact=exact or exact_too, overlooked=overlooked):
            generated = _recoded(mine.codes(texts), places, match.generated)
            wanted = _recoded(theirs.codes(texts), others, match.expected)
            bags = [mixed(np.unique(side) if once else side).sum() for side in (generated, wanted)]
            if bags[0] == bags[1]:
                yield _Candidate(here, generated, wanted, match.decimals)

    def related(self, here: int, there: int, overlooked: Set) -> bool:
        """Returns whether two columns have one name, or the same cells if whatever can be is overlooked in these."""
        if self.generated.columns[here] == self.expected.columns[there]:
            return True
        return bool(self._pair(here, there, OF_TEXTS | OF_NUMBERS, once=Relaxation.DUPLICATES in overlooked))

    def content(self, here: int) -> int:
        """Returns a hash of a generated column's cells in their order."""
        return self._mine[here].content


def _recoded(codes: "Codes", numbers: "Codes", found: Any) -> "Codes":
    """Returns codes of cells with those of numbers replaced by what `matches` found."""
    import numpy as np

    if not len(numbers):
        return codes
    order = np.argsort(numbers)
    places = np.searchsorted(numbers, codes, sorter=order).clip(0, len(numbers) - 1)
    hit = order[places]
    return np.where(numbers[hit] == codes, found[hit] + _NUMBERS_FROM, codes)


class _Search:
    """Assigns one column after the other, and goes back where the rows no longer agree."""

    def __init__(self, trial: Trial, candidates: list[list[_Candidate]], overlooked: Set) -> None:
        self._trial, self._overlooked = trial, overlooked
        self._optional = Relaxation.MISSING_COLUMNS in overlooked
        self._ordered = Relaxation.COLUMN_ORDER not in overlooked
        width, mine = len(candidates), len(trial.generated.columns)
        both = self._both = self._optional and Relaxation.EXTRA_COLUMNS in overlooked
        # If columns may be missing and others may be there instead, half of what was asked for has to be there.
        self._least = (width + 1) // 2 if both else mine if self._optional else width
        if Relaxation.EXTRA_COLUMNS not in overlooked:
            self._least = mine
        self._steps = _MOST_STEPS_OF_BOTH if both else _MOST_STEPS
        self._cells = _MOST_CELLS
        places = range(width)
        self._order = list(places) if self._ordered else sorted(places, key=lambda place: len(candidates[place]))
        self._candidates = candidates

    def run(self) -> Fit | None:
        """Returns an assignment under which the rows agree."""
        import numpy as np

        if sum(map(bool, self._candidates)) < self._least:
            return None
        first = self._first()
        mine = np.zeros(len(self._trial.generated.rows), np.uint64)
        theirs = np.zeros(len(self._trial.expected.rows), np.uint64)
        if first is not None:
            one, other = mine, theirs
            for place, candidate in first.items():
                one, other = one + mixed(candidate.generated, place), other + mixed(candidate.expected, place)
            if self._agree(one, other) and self._complete(first):
                return self._fit(first)
        chosen: dict[int, _Candidate] = {}
        return self._fit(chosen) if self._assign(0, chosen, mine, theirs) else None

    def _first(self) -> dict[int, _Candidate] | None:
        """Returns the first candidate that is left for each column."""
        chosen: dict[int, _Candidate] = {}
        used: set[int] = set()
        last = -1
        for place in self._order:
            for candidate in self._candidates[place]:
                if candidate.place not in used and (not self._ordered or candidate.place > last):
                    chosen[place] = candidate
                    used.add(candidate.place)
                    last = candidate.place
                    break
        return chosen if len(chosen) >= self._least else None

    def _assign(self, depth: int, chosen: dict[int, _Candidate], mine: "Hashes", theirs: "Hashes") -> bool:
        if depth == len(self._order):
            return self._complete(chosen)
        place = self._order[depth]
        used = {candidate.place for candidate in chosen.values()}
        tried: set[tuple[int, int | None]] = set()
        for candidate in self._candidates[place]:
            if candidate.place in used or (self._ordered and used and candidate.place < max(used)):
                continue
            alike = (self._trial.content(candidate.place), id(candidate.expected))
            if alike in tried and not self._ordered:
                continue
            tried.add(alike)
            self._steps -= 1
            self._cells -= len(mine) + len(theirs)
            if self._steps < 0 or self._cells < 0:
                return False
            one, other = mine + mixed(candidate.generated, place), theirs + mixed(candidate.expected, place)
            if self._agree(one, other):
                chosen[place] = candidate
                if self._assign(depth + 1, chosen, one, other):
                    return True
                del chosen[place]
        left = len(self._order) - depth - 1
        return self._optional and len(chosen) + left >= self._least and self._assign(depth + 1, chosen, mine, theirs)

    def _agree(self, mine: "Hashes", theirs: "Hashes") -> bool:
        return rows_agree(mine, theirs, self._trial.expected.ties, self._overlooked)

    def _complete(self, chosen: dict[int, _Candidate]) -> bool:
        """Returns whether enough columns are assigned.

        A column with other cells under an expected name is wrong, and not one missing and one extra; neither is one
        left over that could be assigned.
        """
        if len(chosen) < self._least:
            return False
        if not self._both:
            return True
        used = {candidate.place for candidate in chosen.values()}
        left = [place for place in range(len(self._trial.generated.columns)) if place not in used]
        absent = [place for place in range(len(self._candidates)) if place not in chosen]
        return not any(self._trial.related(here, there, self._overlooked) for here in left for there in absent)

    def _fit(self, chosen: dict[int, _Candidate]) -> Fit:
        columns = [chosen[place].place if place in chosen else None for place in range(len(self._candidates))]
        decimals = [one.decimals for one in chosen.values() if one.decimals is not None]
        return Fit(tuple(columns), min(decimals, default=None))


def rows_agree(
    mine: "Hashes", theirs: "Hashes", ties: Sequence[int] | None, overlooked: Collection[Relaxation]
) -> bool:
    """Returns whether rows are the same, in their order as far as it counts."""
    import numpy as np

    once = Relaxation.DUPLICATES in overlooked
    if ties is None or Relaxation.ROW_ORDER in overlooked:
        if once:
            return bool(np.array_equal(np.unique(mine), np.unique(theirs)))
        return int(mine.sum()) == int(theirs.sum()) and bool(np.array_equal(np.sort(mine), np.sort(theirs)))
    groups = np.asarray(ties)
    if once:
        mine = mine[np.sort(np.unique(mine, return_index=True)[1])]
        firsts = np.sort(np.unique(theirs, return_index=True)[1])
        theirs, groups = theirs[firsts], groups[firsts]
    if len(mine) != len(theirs):
        return False
    if Relaxation.TIE_ORDER in overlooked:
        mine, theirs = mine[np.lexsort((mine, groups))], theirs[np.lexsort((theirs, groups))]
    return bool(np.array_equal(mine, theirs))

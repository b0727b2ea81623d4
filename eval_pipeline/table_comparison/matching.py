"""Finds columns of one table for those of another, so that the rows agree as well, under given relaxations.

The rows under some columns are sums of 64-bit hashes, one for each column and cell, so that a column is added in one
step.
"""

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from eval_pipeline.table_comparison.columns import Column, Keys, concatenated, distinct, mixed
from eval_pipeline.table_comparison.numbers import Match, grouped, matches, may_match
from eval_pipeline.table_comparison.relaxations import NONE, OF_NUMBERS, OF_TEXTS, Relaxation, Set
from eval_pipeline.table_comparison.table import Table

if TYPE_CHECKING:
    import numpy as np

    Codes = np.ndarray[Any, np.dtype[np.int64]]
    Hashes = np.ndarray[Any, np.dtype[np.uint64]]

_MOST_TRIED = 20_000_000
"""Cells of pairs of columns without a counterpart that are tried whatever the names of the columns."""
_SMALL = 20_000
"""Cells of a table that is small enough to ask of every pair of columns what relaxations make of it."""
_MOST_STEPS = 5_000
_MOST_STEPS_OF_BOTH = 100
_MOST_CELLS = 5_000_000
_WITH_NUMBERS: Set = frozenset({Relaxation.TEXT_NUMBERS, Relaxation.PERCENT})
_FORM: Set = OF_TEXTS | OF_NUMBERS


class TooManyOrdersError(Exception):
    """The columns of tables fit in too many orders to try them all."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How two tables are equal.

    Attributes:
        columns: for each expected column the place of the generated one; None if it is missing.
        decimals: the least number of decimals that a column was rounded to; None if none was.
    """

    columns: tuple[int | None, ...]
    decimals: int | None = None


@dataclass(eq=False, slots=True)
class _Candidate:
    """A generated column with the cells of an expected one, and the codes in which they are equal."""

    place: int
    generated: "Codes"
    expected: "Codes"
    decimals: int | None = None
    _hashes: "tuple[int, Hashes, Hashes] | None" = field(default=None, init=False)

    def hashes(self, there: int) -> "tuple[int, Hashes, Hashes]":
        """Returns for each row what the column adds at this place, in both tables."""
        if self._hashes is None or self._hashes[0] != there:
            self._hashes = there, mixed(self.generated, there), mixed(self.expected, there)
        return self._hashes


class Trial:
    """Two tables that are compared under one set of relaxations after another."""

    def __init__(self, generated: Table, expected: Table) -> None:
        keys = Keys()
        self.generated, self.expected = generated, expected
        self._mine = [Column(keys, cells) for cells in generated.cells()]
        self._theirs = [Column(keys, cells) for cells in expected.cells()]
        self._fits: dict[Set, Fit | None] = {}
        self._pairs: dict[tuple[int, int, Set, bool], list[_Candidate]] = {}
        self._same: dict[tuple[int, int], _Candidate] = {}
        self._bags: dict[bool, dict[int, list[int]]] = {}
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
        chosen = {one for one, may in found.items() if may} | self._of_cells
        return frozenset(chosen | (self._turned.relevant if self._turned is not None else set()))

    @property
    def _of_cells(self) -> Set:
        """The relaxations that make a difference to cells of columns without a counterpart as they stand."""
        once = len(self.generated.rows) != len(self.expected.rows)
        bags = [{column.bag(once=once) for column in side} for side in (self._mine, self._theirs)]
        found: Set = NONE
        numbers = True
        for side, others in ((self._mine, bags[1]), (self._theirs, bags[0])):
            odd = [column for column in side if self._small or column.bag(once=once) not in others]
            found = found.union(*(column.active for column in odd))
            numbers = numbers and any(len(column.numbers[0]) or column.active & _WITH_NUMBERS for column in odd)
        return found | OF_NUMBERS if numbers else found

    @property
    def stages(self) -> Iterator[Set]:
        """What to overlook at most: first what tables of these sizes must need, then everything.

        Duplicates and missing columns explain much away, so they are no alternative to what is enough without them.
        """
        mine, theirs = self.generated, self.expected
        drastic = {
            Relaxation.DUPLICATES: len(mine.rows) == len(theirs.rows),
            Relaxation.EXTRA_COLUMNS: len(mine.columns) <= len(theirs.columns),
            Relaxation.MISSING_COLUMNS: len(mine.columns) >= len(theirs.columns),
        }
        if self._turned is None:
            yield self.relevant - {one for one, needless in drastic.items() if needless}
        yield self.relevant

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
        optional = Relaxation.MISSING_COLUMNS in overlooked
        candidates: list[list[_Candidate]] = []
        for there in range(len(self._theirs)):
            found = self._candidates(there, overlooked, every=every)
            if not found and not optional:
                return None
            candidates.append(found)
        return next(_Search(self, candidates, overlooked).run(), None)

    def orders(self, overlooked: Set, *, every: bool) -> Iterator[tuple[int, ...]]:
        """Yields the orders of columns in which the tables are equal, see `rows.column_orders`.

        Raises:
            TooManyOrdersError: not all could be tried.
        """
        candidates = [self._candidates(there, overlooked, every=True) for there in range(len(self._theirs))]
        if not all(candidates):
            return
        search = _Search(self, candidates, overlooked, alike=every)
        seen = set()
        for fit in search.run_through():
            order = tuple(place for place in fit.columns if place is not None)
            if order not in seen:
                seen.add(order)
                yield order
        if search.exhausted:
            raise TooManyOrdersError("the columns of the results fit in too many orders to try them all")

    def _candidates(self, there: int, overlooked: Set, *, every: bool) -> list[_Candidate]:
        """Returns the generated columns with the same cells as an expected one: of its name first, then its place.

        Unless `every`, columns that have counterparts with the same cells as they stand have no others, except that an
        expected one may have one without of its name or place.
        """
        name, names = self.expected.columns[there], self.generated.columns
        pool = self._pool(there, overlooked, every=every)
        if not overlooked & {Relaxation.COLUMN_ORDER, Relaxation.EXTRA_COLUMNS, Relaxation.MISSING_COLUMNS}:
            pool &= {there}
        places = [here for here in pool if self._named(here, name, overlooked)]
        places.sort(key=lambda here: (names[here] != name, here != there, here))
        return [one for here in places for one in self._pair(here, there, overlooked, every=every)]

    def _pool(self, there: int, overlooked: Set, *, every: bool) -> set[int]:
        """Returns the places of generated columns that may have the cells of an expected one."""
        once = Relaxation.DUPLICATES in overlooked
        column = self._theirs[there]
        same = self._by_bag(once=once).get(column.bag(once=once), [])
        if every and overlooked & _FORM:
            return set(range(len(self._mine)))
        if every:  # cells that are not the same may only be close
            return {*same, *(self._floats if column.exact else self._numeric)}
        odd = self._odd(once=once)
        if not same:
            named = {here for here in odd if self.generated.columns[here] == self.expected.columns[there]}
            # In a large table, to try a column against every other takes minutes; the one of its name is meant.
            return named if named and len(odd) ** 2 * len(self.expected.rows) > _MOST_TRIED else set(odd)
        return {
            *same,
            *(here for here in odd if here == there or self.generated.columns[here] == self.expected.columns[there]),
        }

    def _by_bag(self, *, once: bool) -> dict[int, list[int]]:
        """Returns the places of generated columns by their cells."""
        if once not in self._bags:
            found = self._bags[once] = {}
            for here, column in enumerate(self._mine):
                found.setdefault(column.bag(once=once), []).append(here)
        return self._bags[once]

    @cached_property
    def _numeric(self) -> list[int]:
        return [here for here, column in enumerate(self._mine) if len(column.numbers[0])]

    @cached_property
    def _floats(self) -> list[int]:
        return [here for here in self._numeric if not self._mine[here].exact]

    def _odd(self, *, once: bool) -> list[int]:
        """Returns the generated columns that have no counterpart as they stand."""
        wanted = {column.bag(once=once) for column in self._theirs}
        return [here for bag, places in self._by_bag(once=once).items() if bag not in wanted for here in places]

    def _named(self, here: int, name: Hashable, overlooked: Set) -> bool:
        if Relaxation.COLUMN_NAMES in overlooked or self.generated.columns[here] == name:
            return True
        # A list and a single value have no names.
        unnamed = self.generated.columns[here] is None or name is None
        return unnamed and Relaxation.SHAPE in overlooked

    def _pair(self, here: int, there: int, overlooked: Set, *, every: bool = False) -> list[_Candidate]:
        """Returns the ways in which two columns have the same cells; unless `every`, the mildest is enough."""
        mine, theirs = self._mine[here], self._theirs[there]
        once = Relaxation.DUPLICATES in overlooked
        if mine.bag(once=once) == theirs.bag(once=once):
            if (here, there) not in self._same:
                self._same[here, there] = _Candidate(here, mine.codes, theirs.codes)
            if not every:
                return [self._same[here, there]]
        texts = overlooked & OF_TEXTS
        if texts:
            texts &= mine.active | theirs.active
        key = (here, there, texts | (overlooked & OF_NUMBERS), once)
        if key not in self._pairs:
            self._pairs[key] = list(self._ways(here, there, key[2], once=once))
        return self._pairs[key]

    def _ways(self, here: int, there: int, overlooked: Set, *, once: bool) -> Iterator[_Candidate]:
        mine, theirs = self._mine[here], self._theirs[there]
        if mine.bag(once=once) == theirs.bag(once=once):
            yield self._same[here, there]
            if mine.relaxed(overlooked) is mine and theirs.relaxed(overlooked) is theirs:
                if not mine.exact and not theirs.exact:
                    yield from _close(here, mine, theirs, grouped(mine.numbers[1], theirs.numbers[1]), once=once)
                return
        for one, other in product(mine.readings(overlooked), theirs.readings(overlooked)):
            if one.bag(once=once) == other.bag(once=once):
                yield _Candidate(here, one.codes, other.codes)
                return
        mine, theirs = mine.relaxed(overlooked), theirs.relaxed(overlooked)
        if may_match(mine.spread, theirs.spread, overlooked, once=once):
            exact = mine.exact or theirs.exact
            found = matches(mine.numbers[1], theirs.numbers[1], exact=exact, overlooked=overlooked)
            yield from _close(here, mine, theirs, found, once=once)

    def related(self, here: int, there: int) -> bool:
        """Returns whether two columns have the same cells if whatever can be is overlooked in these."""
        repeated = len(self.generated.rows) != len(self.expected.rows)
        return bool(self._pair(here, there, _FORM | {Relaxation.DUPLICATES} if repeated else _FORM))

    def shared(self, here: int, there: int) -> float:
        """Returns how many of the different cells of two columns are in both: 1 if all."""
        mine, theirs = self._mine[here].distinct, self._theirs[there].distinct
        both = len(mine) + len(theirs) - len(distinct(concatenated(mine, theirs)))
        return both / max(len(mine) + len(theirs) - both, 1)

    def hashes(self, here: int, there: int) -> "tuple[bool, Hashes, Hashes]":
        """Returns whether two columns have the same cells as they stand, and what they add to the rows."""
        mine, theirs = self._mine[here], self._theirs[there]
        generated, wanted = mine.distinct, theirs.distinct
        exact = mine.exact or theirs.exact
        nearest = next(matches(mine.numbers[1], theirs.numbers[1], exact=exact, overlooked=NONE), None)
        if nearest is not None:
            generated, wanted = mine.recoded(nearest.generated), theirs.recoded(nearest.expected)
        one, other = mixed(generated[mine.places], there), mixed(wanted[theirs.places], there)
        return int(one.sum()) == int(other.sum()), one, other

    def content(self, here: int) -> int:
        """Returns a hash of a generated column's cells in their order."""
        return self._mine[here].content


def _close(here: int, mine: Column, theirs: Column, found: Iterator[Match], *, once: bool) -> Iterator[_Candidate]:
    """Yields those matches of numbers under which two columns have the same cells."""
    import numpy as np

    for match in found:
        generated, wanted = mine.recoded(match.generated), theirs.recoded(match.expected)
        if once:
            same = np.array_equal(distinct(generated), distinct(wanted))
        else:
            same = (mixed(generated) * mine.counts).sum() == (mixed(wanted) * theirs.counts).sum()
        if same:
            yield _Candidate(here, generated[mine.places], wanted[theirs.places], match.decimals)


class _Search:
    """Assigns one column after the other, and goes back where the rows no longer agree."""

    def __init__(
        self, trial: Trial, candidates: list[list[_Candidate]], overlooked: Set, *, alike: bool = False
    ) -> None:
        """Begins; several columns with the same cells are all tried only if `alike`."""
        self.exhausted = False
        self._alike = alike
        self._trial, self._overlooked, self._candidates = trial, overlooked, candidates
        self._optional = Relaxation.MISSING_COLUMNS in overlooked
        self._ordered = Relaxation.COLUMN_ORDER not in overlooked
        width, mine = len(candidates), len(trial.generated.columns)
        self._both = self._optional and Relaxation.EXTRA_COLUMNS in overlooked
        # If columns may be missing and others may be there instead, half of what was asked for has to be there.
        self._least = (width + 1) // 2 if self._both else mine if self._optional else width
        self._steps = _MOST_STEPS_OF_BOTH if self._both else _MOST_STEPS
        self._cells = _MOST_CELLS
        places = range(width)
        self._order = list(places) if self._ordered else sorted(places, key=lambda place: len(candidates[place]))

    def run(self) -> Iterator[Fit]:
        """Yields assignments under which the rows agree."""
        if sum(map(bool, self._candidates)) < self._least:
            return
        first = self._first()
        if first is not None:
            one, other = self._no_columns()
            for place, candidate in first.items():
                _, more, others = candidate.hashes(place)
                one += more
                other += others
            if self._agree(one, other) and self._complete(first):
                yield self._fit(first)
                return
        yield from self.run_through()

    def _no_columns(self) -> "tuple[Hashes, Hashes]":
        import numpy as np

        sides = (self._trial.generated, self._trial.expected)
        mine, theirs = (np.zeros(len(side.rows), np.uint64) for side in sides)
        return mine, theirs

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

    def run_through(self) -> Iterator[Fit]:
        """Yields assignments found by trying candidates one after the other, within the limits of work."""
        chosen: list[_Candidate | None] = []
        rows = [self._no_columns()]
        untried = [self._untried(chosen)]
        while untried:
            if not (found := next(untried[-1], ())):
                untried.pop()
                rows.pop()
                if chosen:
                    chosen.pop()
                continue
            candidate, after = found[0], rows[-1]
            if candidate is not None:
                self._steps -= 1
                self._cells -= sum(map(len, after))
                if self._steps < 0 or self._cells < 0:
                    self.exhausted = True
                    return
                _, one, other = candidate.hashes(self._order[len(chosen)])
                after = after[0] + one, after[1] + other
                if not self._agree(*after):
                    continue
            chosen.append(candidate)
            if len(chosen) < len(self._order):
                rows.append(after)
                untried.append(self._untried(chosen))
                continue
            taken = {place: one for place, one in zip(self._order, chosen, strict=True) if one is not None}
            if self._complete(taken):
                yield self._fit(taken)
            chosen.pop()

    def _untried(self, chosen: Sequence[_Candidate | None]) -> Iterator[tuple[_Candidate | None]]:
        """Yields the candidates for the next column, one of several alike; None if it may be missing."""
        used = {one.place for one in chosen if one is not None}
        tried: set[tuple[int, int]] = set()
        for candidate in self._candidates[self._order[len(chosen)]]:
            if candidate.place in used or (self._ordered and used and candidate.place < max(used)):
                continue
            alike = (self._trial.content(candidate.place), id(candidate.expected))
            if self._ordered or self._alike or alike not in tried:
                tried.add(alike)
                yield (candidate,)
        if self._optional and len(used) + len(self._order) - len(chosen) > self._least:
            yield (None,)

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
        mine, theirs = self._trial.generated.columns, self._trial.expected.columns
        used = {candidate.place for candidate in chosen.values()}
        left = [place for place in range(len(mine)) if place not in used]
        absent = [place for place in range(len(theirs)) if place not in chosen]
        if any(mine[here] in theirs for here in left) or any(theirs[there] in mine for there in absent):
            return False
        return not any(self._trial.related(here, there) for here in left for there in absent)

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
            return bool(np.array_equal(distinct(mine), distinct(theirs)))
        return len(mine) == len(theirs) and _bag(mine) == _bag(theirs)
    groups = np.asarray(ties)
    if once:
        mine = mine[np.sort(np.unique(mine, return_index=True)[1])]
        firsts = np.sort(np.unique(theirs, return_index=True)[1])
        theirs, groups = theirs[firsts], groups[firsts]
    if len(mine) != len(theirs):
        return False
    if Relaxation.TIE_ORDER in overlooked:
        mine, theirs = mine + mixed(groups), theirs + mixed(groups)
        return _bag(mine) == _bag(theirs)
    return bool(np.array_equal(mine, theirs))


def _bag(rows: "Hashes") -> int:
    return int(mixed(rows).sum())

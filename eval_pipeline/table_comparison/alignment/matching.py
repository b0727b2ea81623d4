"""Finds columns of one table for those of another, so that the rows agree as well, under given relaxations."""

from collections.abc import Hashable, Iterator
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from eval_pipeline.table_comparison.alignment.assigning import ColumnCandidate, Fit, Search
from eval_pipeline.table_comparison.codes import Keys, common, distinct, mixed
from eval_pipeline.table_comparison.columns import ComparedColumn, columns_of
from eval_pipeline.table_comparison.numbers import Match, grouped, matches, may_match, nearest
from eval_pipeline.table_comparison.relaxations import FORM, NONE, OF_NUMBERS, OF_TEXTS, Relaxation, Set
from eval_pipeline.table_comparison.table import ComparedTable

if TYPE_CHECKING:
    import numpy as np

    Codes = np.ndarray[Any, np.dtype[np.int64]]
    Hashes = np.ndarray[Any, np.dtype[np.uint64]]

_MOST_TRIED = 20_000_000
"""Cells of pairs of columns without a counterpart that are tried whatever the names of the columns."""
_SMALL = 20_000
"""Cells of a table that is small enough to ask of every pair of columns what relaxations make of it."""
_WITH_NUMBERS: Set = frozenset({Relaxation.TEXT_NUMBERS, Relaxation.PERCENT})


class TooManyOrdersError(Exception):
    """The columns of tables fit in too many orders to try them all."""


class Trial:
    """Two tables that are compared under one set of relaxations after another."""

    def __init__(self, generated: ComparedTable, expected: ComparedTable) -> None:
        keys = Keys()
        self.generated, self.expected = generated, expected
        self.mine, self.theirs = columns_of(generated, keys), columns_of(expected, keys)
        self._fits: dict[Set, Fit | None] = {}
        self._pairs: dict[tuple[int, int, Set, bool], list[ColumnCandidate]] = {}
        self._same: dict[tuple[int, int], ColumnCandidate] = {}
        self._counterparts: dict[tuple[int, bool], list[int]] = {}
        cells = max(len(generated.rows) * len(generated.columns), len(expected.rows) * len(expected.columns))
        self.small = cells <= _SMALL

    @cached_property
    def turned(self) -> "Trial | None":
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
            Relaxation.SHAPE: self.generated.shape != self.expected.shape or self.turned is not None,
        }
        chosen = {one for one, may in found.items() if may} | self._of_cells
        return frozenset(chosen | (self.turned.relevant if self.turned is not None else set()))

    @property
    def _of_cells(self) -> Set:
        """The relaxations that make a difference to cells of columns without a counterpart as they stand."""
        once = len(self.generated.rows) != len(self.expected.rows)
        mine, theirs = self.mine, self.theirs
        if not self.small:
            met = {there: self._same_cells(there, once=once) for there, one in enumerate(theirs) if one.has_forms}
            found = {here for places in met.values() for here in places}
            mine = [column for here, column in enumerate(mine) if column.has_forms and here not in found]
            theirs = [theirs[there] for there, places in met.items() if not places]
        forms = NONE.union(*(column.active for side in (mine, theirs) for column in side))
        if self.small and not all(
            any(len(one.numbers[0]) or one.active & _WITH_NUMBERS for one in side) for side in (mine, theirs)
        ):
            return forms
        return forms | OF_NUMBERS

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
        if self.turned is None:
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
        if self.turned is not None and Relaxation.SHAPE in overlooked:
            fit = self.turned.fit(overlooked)
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
        if fit is None and self.small:
            fit = self._assigned(overlooked, every=True)
        return fit

    def _assigned(self, overlooked: Set, *, every: bool) -> Fit | None:
        optional = Relaxation.MISSING_COLUMNS in overlooked
        # A column that has the name of an expected one is no other's, see `Search._complete`.
        wanted = set(self.generated.columns) if Relaxation.EXTRA_COLUMNS in overlooked else set()
        candidates: list[list[ColumnCandidate]] = []
        for there, name in enumerate(self.expected.columns):
            found = self._candidates(there, overlooked, every=every)
            if not found and (not optional or name in wanted):
                return None
            candidates.append(found)
        return next(Search(self, candidates, overlooked).run(), None)

    def orders(self, overlooked: Set, *, every: bool) -> Iterator[tuple[int, ...]]:
        """Yields the orders of columns in which the tables are equal, see `rows.column_orders`.

        Raises:
            TooManyOrdersError: not all could be tried.
        """
        candidates = [self._candidates(there, overlooked, every=True) for there in range(len(self.theirs))]
        if not all(candidates):
            return
        search = Search(self, candidates, overlooked, alike=every)
        seen = set()
        for fit in search.run_through():
            order = tuple(place for place in fit.columns if place is not None)
            if order not in seen:
                seen.add(order)
                yield order
        if search.exhausted:
            raise TooManyOrdersError("the columns of the results fit in too many orders to try them all")

    def _candidates(self, there: int, overlooked: Set, *, every: bool) -> list[ColumnCandidate]:
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
        return [one for here in places for one in self.pair(here, there, overlooked, every=every)]

    def _pool(self, there: int, overlooked: Set, *, every: bool) -> set[int]:
        """Returns the places of generated columns that may have the cells of an expected one."""
        once = Relaxation.DUPLICATES in overlooked
        column = self.theirs[there]
        same = self._same_cells(there, once=once)
        if every and overlooked & FORM:
            return set(range(len(self.mine)))
        if every:  # cells that are not the same may only be close
            return {*same, *(self._floats if column.exact else self._numeric)}
        named = {here for here, name in enumerate(self.generated.columns) if name == self.expected.columns[there]}
        # In a large table, it takes long to find all that have no counterpart as sets.
        odd = named if named and once and not self.small else self._odd(once=once)
        if same:
            return {*same, *(odd & {*named, there})}
        # In a large table, to try a column against every other takes minutes; the one of its name is meant.
        return odd & named if odd & named and len(odd) ** 2 * len(self.expected.rows) > _MOST_TRIED else odd

    def _same_cells(self, there: int, *, once: bool) -> list[int]:
        """Returns the places of the generated columns that have the cells of an expected one as they stand."""
        if (there, once) not in self._counterparts:
            column = self.theirs[there]
            self._counterparts[there, once] = [
                here for here in self._by_ends.get(column.ends, ()) if self.mine[here].same(column, once=once)
            ]
        return self._counterparts[there, once]

    @cached_property
    def _by_ends(self) -> dict[tuple[int, int], list[int]]:
        found: dict[tuple[int, int], list[int]] = {}
        for here, column in enumerate(self.mine):
            found.setdefault(column.ends, []).append(here)
        return found

    def _odd(self, *, once: bool) -> set[int]:
        """Returns the generated columns that have no counterpart as they stand."""
        met = (here for there in range(len(self.theirs)) for here in self._same_cells(there, once=once))
        return set(range(len(self.mine))).difference(met)

    @cached_property
    def _numeric(self) -> list[int]:
        return [here for here, column in enumerate(self.mine) if len(column.numbers[0])]

    @cached_property
    def _floats(self) -> list[int]:
        return [here for here in self._numeric if not self.mine[here].exact]

    def _named(self, here: int, name: Hashable, overlooked: Set) -> bool:
        if Relaxation.COLUMN_NAMES in overlooked or self.generated.columns[here] == name:
            return True
        # A list and a single value have no names.
        unnamed = self.generated.columns[here] is None or name is None
        return unnamed and Relaxation.SHAPE in overlooked

    def pair(self, here: int, there: int, overlooked: Set, *, every: bool = False) -> list[ColumnCandidate]:
        """Returns the ways in which two columns have the same cells; unless `every`, the mildest is enough."""
        mine, theirs = self.mine[here], self.theirs[there]
        once = Relaxation.DUPLICATES in overlooked
        if mine.same(theirs, once=once):
            if (here, there) not in self._same:
                self._same[here, there] = ColumnCandidate(here, mine.codes, theirs.codes)
            if not every:
                return [self._same[here, there]]
        if not once and len(self.generated.rows) != len(self.expected.rows):
            return []
        texts = overlooked & OF_TEXTS
        if texts:
            texts &= mine.active | theirs.active
        key = (here, there, texts, once)
        if key not in self._pairs:
            self._pairs[key] = list(self._ways(here, there, texts, once=once))
        return [one for one in self._pairs[key] if one.needs <= overlooked]

    def _ways(self, here: int, there: int, overlooked: Set, *, once: bool) -> Iterator[ColumnCandidate]:
        mine, theirs = self.mine[here], self.theirs[there]
        if mine.same(theirs, once=once):
            yield self._same[here, there]
            if mine.relaxed(overlooked) is mine and theirs.relaxed(overlooked) is theirs:
                if not mine.exact and not theirs.exact:
                    yield from _close(here, mine, theirs, grouped(mine.numbers[1], theirs.numbers[1]), once=once)
                return
        for one, other in product(mine.readings(overlooked), theirs.readings(overlooked)):
            if one.same(other, once=once):
                yield ColumnCandidate(here, one.codes, other.codes)
                return
        mine, theirs = mine.relaxed(overlooked), theirs.relaxed(overlooked)
        if once or may_match(mine.spread, theirs.spread):
            exact, decimals = mine.exact or theirs.exact, (mine.decimals, theirs.decimals)
            found = matches(mine.numbers[1], theirs.numbers[1], decimals, exact=exact)
            yield from _close(here, mine, theirs, found, once=once)

    def related(self, here: int, there: int) -> bool:
        """Returns whether two columns have the same cells if whatever can be is overlooked in these."""
        repeated = len(self.generated.rows) != len(self.expected.rows)
        return bool(self.pair(here, there, FORM | {Relaxation.DUPLICATES} if repeated else FORM))

    def same(self, here: int, there: int) -> bool:
        """Returns whether two columns have the same cells as they stand."""
        return self.mine[here].same(self.theirs[there], once=False)

    def alike(self, here: int, there: int) -> bool:
        """Returns whether the different cells of two columns are the same."""
        return self.mine[here].same(self.theirs[there], once=True)

    def shared(self, here: int, there: int) -> float:
        """Returns how many of the different cells of two columns are in both: 1 if all."""
        mine, theirs = self.mine[here].distinct, self.theirs[there].distinct
        both = common(mine, theirs)
        return both / max(len(mine) + len(theirs) - both, 1)

    def hashes(self, here: int, there: int, overlooked: Set = NONE) -> "tuple[Hashes, Hashes]":
        """Returns what two columns add to the rows; cells that are the same if this is overlooked add the same."""
        if (overlooked or self.same(here, there)) and (found := self.pair(here, there, overlooked)):
            return found[0].hashes(there)[1:]
        mine, theirs = self.mine[here].relaxed(overlooked), self.theirs[there].relaxed(overlooked)
        if (mine.exact and theirs.exact) or not len(mine.numbers[1]) or not len(theirs.numbers[1]):
            return mixed(mine.codes, there), mixed(theirs.codes, there)
        near = nearest(mine.numbers[1], theirs.numbers[1], exact=mine.exact or theirs.exact)
        one, other = mine.recoded(near.generated)[mine.places], theirs.recoded(near.expected)[theirs.places]
        return mixed(one, there), mixed(other, there)

    def content(self, here: int) -> int:
        """Returns a hash of a generated column's cells in their order."""
        return self.mine[here].content


def _close(
    here: int, mine: ComparedColumn, theirs: ComparedColumn, found: Iterator[Match], *, once: bool
) -> Iterator[ColumnCandidate]:
    """Yields those matches of numbers under which two columns have the same cells."""
    import numpy as np

    for match in found:
        generated, wanted = mine.recoded(match.generated), theirs.recoded(match.expected)
        if once:
            same = np.array_equal(distinct(generated), distinct(wanted))
        else:
            same = _bag(generated, mine.counts) == _bag(wanted, theirs.counts)
        if same:
            yield ColumnCandidate(here, generated[mine.places], wanted[theirs.places], match.decimals, match.needs)


def _bag(codes: "Codes", counts: Any) -> int:
    return int((mixed(codes) * counts.view("uint64")).sum())

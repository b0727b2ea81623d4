"""Assigns columns of one table to those of another, so that the rows agree.

The rows under some columns are sums of 64-bit hashes, one for each column and cell, so that a column is added in one
step.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eval_pipeline.table_comparison.codes import distinct, mixed
from eval_pipeline.table_comparison.relaxations import NONE, Relaxation, Set

if TYPE_CHECKING:
    import numpy as np

    from eval_pipeline.table_comparison.alignment.matching import Trial

    Codes = np.ndarray[Any, np.dtype[np.int64]]
    Hashes = np.ndarray[Any, np.dtype[np.uint64]]

_MOST_STEPS = 5_000
_MOST_STEPS_OF_BOTH = 100
_MOST_CELLS = 5_000_000


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
class ColumnCandidate:
    """A generated column with the cells of an expected one, and the codes in which they are equal.

    Attributes:
        needs: what is overlooked of their numbers.
    """

    place: int
    generated: "Codes"
    expected: "Codes"
    decimals: int | None = None
    needs: Set = NONE
    _hashes: "tuple[int, Hashes, Hashes] | None" = field(default=None, init=False)

    def hashes(self, there: int) -> "tuple[int, Hashes, Hashes]":
        """Returns for each row what the column adds at this place, in both tables."""
        if self._hashes is None or self._hashes[0] != there:
            self._hashes = there, mixed(self.generated, there), mixed(self.expected, there)
        return self._hashes


class Search:
    """Assigns one column after the other, and goes back where the rows no longer agree."""

    def __init__(
        self, trial: "Trial", candidates: list[list[ColumnCandidate]], overlooked: Set, *, alike: bool = False
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

    def _first(self) -> dict[int, ColumnCandidate] | None:
        """Returns the first candidate that is left for each column."""
        chosen: dict[int, ColumnCandidate] = {}
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
        chosen: list[ColumnCandidate | None] = []
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

    def _untried(self, chosen: Sequence[ColumnCandidate | None]) -> Iterator[tuple[ColumnCandidate | None]]:
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

    def _complete(self, chosen: dict[int, ColumnCandidate]) -> bool:
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

    def _fit(self, chosen: dict[int, ColumnCandidate]) -> Fit:
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
        if len(mine) == len(theirs) and bag_of(mine) == bag_of(theirs):
            return True
        return once and mine.max() == theirs.max() and bool(np.array_equal(distinct(mine), distinct(theirs)))
    groups = np.asarray(ties)
    if once:
        mine = mine[np.sort(np.unique(mine, return_index=True)[1])]
        firsts = np.sort(np.unique(theirs, return_index=True)[1])
        theirs, groups = theirs[firsts], groups[firsts]
    if len(mine) != len(theirs):
        return False
    if Relaxation.TIE_ORDER in overlooked:
        mine, theirs = mine + mixed(groups), theirs + mixed(groups)
        return bag_of(mine) == bag_of(theirs)
    return bool(np.array_equal(mine, theirs))


def bag_of(rows: "Hashes") -> int:
    """Returns a hash of rows as a multiset."""
    return int(mixed(rows).sum())

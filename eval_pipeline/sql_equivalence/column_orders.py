"""Finds the orders of columns in which pairs of results are equal, with bounded work.

Columns are assigned one by one. After each, the rows of both sides, cut to the columns assigned so far, have to be
equal as multisets, so that there are hardly any dead ends.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sql_equivalence.cells import NUMBERS, close, key_of

_MOST_CELLS = 5_000_000
_TIMES = 20
"""Cells compared in one search: so many, and so many times those of the results."""

Side = list[list[Any]]
"""The keys of a result's cells, column by column."""
Classes = list[int]
"""For each row a number; rows that are equal so far have the same."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Two results with the same number of rows and columns.

    Attributes:
        generated: keys of one.
        expected: keys of the other.
        start: classes of the rows before any column is assigned, by position: groups of tied rows.
    """

    generated: Side
    expected: Side
    start: Classes


def sides(
    generated: Sequence[Sequence[Any]], expected: Sequence[Sequence[Any]], ties: Sequence[int] | None, width: int
) -> Sides:
    """Returns the keys of two results; close floats have one key, and so have floats between which others are close."""
    mine, theirs = ([[key_of(row[place]) for row in rows] for place in range(width)] for rows in (generated, expected))
    numbers = {cell for column in (*mine, *theirs) for cell in column if isinstance(cell, NUMBERS)}
    if not all(isinstance(number, int) for number in numbers):
        keys = _clusters(numbers)
        for column in (*mine, *theirs):
            column[:] = [keys[cell] if isinstance(cell, NUMBERS) else cell for cell in column]
    return Sides(mine, theirs, list(ties) if ties is not None else [0] * len(expected))


def _clusters(numbers: set[Any]) -> dict[Any, tuple[str, int]]:
    """Returns for each number that of its cluster: sorted, neighbours that are close share one."""
    found: dict[Any, tuple[str, int]] = {}
    before, cluster = None, 0
    for number in sorted(numbers, key=float):
        cluster += before is not None and not close(before, number)
        found[number] = ("number", cluster)
        before = number
    return found


def orders(results: Sequence[Sides], width: int, *, every: bool) -> Iterator[tuple[int, ...]]:
    """Yields for each expected column the position of a generated one; orders near the given one come first.

    Under these orders results are equal by their keys; whether floats of one key are close is left to the caller.

    Args:
        results: pairs of results with `width` columns; the first should be those that rule out most.
        width: number of columns.
        every: whether to yield also orders that differ only in columns with the same cells.

    Raises:
        SqlError: there are too many to try them all.
    """
    if not width:
        yield ()
        return
    candidates = _candidates(results, width)
    if candidates is not None:
        yield from _Search(results, candidates, every=every).run()


def _candidates(results: Sequence[Sides], width: int) -> list[list[int]] | None:
    """Returns for each place the columns with the same cells, its own first; None if not every place can have one."""
    mine: list[tuple[frozenset[Any], ...]] = [()] * width
    theirs = list(mine)
    for one in results:
        mine = [(*bags, _bag(column)) for bags, column in zip(mine, one.generated, strict=True)]
        theirs = [(*bags, _bag(column)) for bags, column in zip(theirs, one.expected, strict=True)]
        if Counter(mine) != Counter(theirs):
            return None
    having: dict[Any, list[int]] = {}
    for place, bags in enumerate(mine):
        having.setdefault(bags, []).append(place)
    found = [having[bags] for bags in theirs]
    return [
        [place] * (place in others) + [other for other in others if other != place]
        for place, others in enumerate(found)
    ]


def _bag(column: list[Any]) -> frozenset[Any]:
    return frozenset(Counter(column).items())


class _Search:
    """Assigns one column after the other, and goes back where the rows no longer agree."""

    def __init__(self, results: Sequence[Sides], candidates: Sequence[Sequence[int]], *, every: bool) -> None:
        self._results, self._candidates, self._every = results, candidates, every
        self._left = _MOST_CELLS + _TIMES * len(candidates) * sum(len(one.start) for one in results)
        self._expected = [one.start for one in results]
        self._steps: list[list[tuple[dict[tuple[int, Any], int], Counter[int]]]] = []

    def run(self) -> Iterator[tuple[int, ...]]:
        chosen: list[int] = []
        classes = [[one.start for one in self._results]]
        untried = [self._open(chosen)]
        while untried:
            column = next(untried[-1], None)
            if column is None:
                untried.pop()
                classes.pop()
                if chosen:
                    chosen.pop()
            elif (after := self._after(classes[-1], column, len(chosen))) is not None:
                chosen.append(column)
                if len(chosen) == len(self._candidates):
                    yield tuple(chosen)
                    chosen.pop()
                else:
                    classes.append(after)
                    untried.append(self._open(chosen))

    def _open(self, chosen: Sequence[int]) -> Iterator[int]:
        """Returns the columns to try at the next place: one of several alike, unless every order is asked for."""
        used = set(chosen)
        found = [other for other in self._candidates[len(chosen)] if other not in used]
        if self._every or len(found) == 1:
            return iter(found)
        alike: dict[Any, int] = {}
        for other in found:
            alike.setdefault(tuple(tuple(one.generated[other]) for one in self._results), other)
        return iter(alike.values())

    def _after(self, classes: Sequence[Classes], column: int, place: int) -> list[Classes] | None:
        """Returns the rows' classes with one more column; None if the expected rows have others."""
        found = []
        for one, before, (numbers, wanted) in zip(self._results, classes, self._step(place), strict=True):
            self._left -= len(before) + 1
            if self._left < 0:
                raise SqlError(ErrorClass.TIMEOUT, "the columns of the results fit in too many orders to try them all")
            rows = [numbers.get(key, -1) for key in zip(before, one.generated[column], strict=True)]
            if Counter(rows) != wanted:
                return None
            found.append(rows)
        return found

    def _step(self, place: int) -> list[tuple[dict[tuple[int, Any], int], Counter[int]]]:
        """Returns for each result the class of an expected row from the class before and the cell, and their counts."""
        if place == len(self._steps):
            made = []
            for number, one in enumerate(self._results):
                numbers: dict[tuple[int, Any], int] = {}
                pairs = zip(self._expected[number], one.expected[place], strict=True)
                rows = [numbers.setdefault(pair, len(numbers)) for pair in pairs]
                self._expected[number] = rows
                made.append((numbers, Counter(rows)))
            self._steps.append(made)
        return self._steps[place]

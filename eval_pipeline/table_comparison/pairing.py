"""Which columns and rows of two different tables correspond to each other, for showing them side by side."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from eval_pipeline.table_comparison.graded import unmatched
from eval_pipeline.table_comparison.matching import Trial
from eval_pipeline.table_comparison.table import Table

_MOST_PAIRED = 80
"""Number of rows of each side that are compared with each other; further differing rows count as missing or extra."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Which rows of two tables correspond, as places of an expected and a generated one.

    Attributes:
        columns: pairs of corresponding columns, in the same form.
        same: pairs of rows that are equal in these columns.
        changed: pairs of rows with some cells in common.
        missing: expected rows without a counterpart.
        extra: generated rows without a counterpart.
    """

    columns: tuple[tuple[int, int], ...]
    same: tuple[tuple[int, int], ...]
    changed: tuple[tuple[int, int], ...]
    missing: tuple[int, ...]
    extra: tuple[int, ...]
    _cells: dict[int, tuple[list[int], list[int]]] = field(repr=False)

    def alike(self, expected: int, generated: int, column: int) -> bool:
        """Returns whether two rows have the same cell in an expected column that has a counterpart."""
        theirs, mine = self._cells[column]
        return theirs[expected] == mine[generated]


def pair(generated: Table, expected: Table) -> Pairing:
    """Pairs columns, then equal rows, then rows with the most cells in common; rows without any stay alone."""
    trial = Trial(generated, expected)
    columns = tuple((there, here) for there, here in enumerate(closest_columns(trial)) if here is not None)
    cells = {}
    for there, here in columns:
        _, mine, theirs = trial.hashes(here, there)
        cells[there] = (theirs.tolist(), mine.tolist())
    rows = [list(zip(*(cells[there][side] for there, _ in columns), strict=True)) for side in (0, 1)]
    rows = [found or [()] * len(table.rows) for found, table in zip(rows, (expected, generated), strict=True)]
    missing, extra = unmatched(*rows), unmatched(rows[1], rows[0])
    same = tuple(_equal(rows, missing, extra))
    changed = []
    for _, one, other in sorted(_candidates(rows, missing, extra)):
        if one in missing and other in extra:
            missing.remove(one)
            extra.remove(other)
            changed.append((one, other))
    return Pairing(columns, same, tuple(sorted(changed)), tuple(missing), tuple(extra), cells)


def _equal(rows: list[list[Any]], missing: list[int], extra: list[int]) -> Iterator[tuple[int, int]]:
    places: dict[Any, list[int]] = {}
    lonely = set(extra)
    for place in reversed(range(len(rows[1]))):
        if place not in lonely:
            places.setdefault(rows[1][place], []).append(place)
    lonely = set(missing)
    yield from ((place, places[row].pop()) for place, row in enumerate(rows[0]) if place not in lonely)


def _candidates(rows: list[list[Any]], missing: list[int], extra: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yields rows that may correspond: minus the number of common cells, and both places."""
    only_one = len(rows[0]) == len(rows[1]) == 1
    for one in missing[:_MOST_PAIRED]:
        for other in extra[:_MOST_PAIRED]:
            common = sum(mine == theirs for mine, theirs in zip(rows[0][one], rows[1][other], strict=True))
            if only_one or (common and 2 * common >= len(rows[0][one])):
                yield -common, one, other


def closest_columns(trial: Trial) -> tuple[int | None, ...]:
    """Returns for each expected column the generated one of its name, or else the one that shares most of its cells.

    If as many columns are left on both sides, they correspond in their order. None where there is none.
    """
    names, wanted = trial.generated.columns, trial.expected.columns
    found: list[int | None] = [None] * len(wanted)
    left = list(range(len(names)))
    for same in (lambda one, other: one == other, lambda one, other: _folded(one) == _folded(other)):
        for place, name in enumerate(wanted):
            here = next((here for here in left if name not in (None, "") and same(names[here], name)), None)
            if found[place] is None and here is not None:
                found[place] = here
                left.remove(here)
    for shared in (trial.alike, trial.shared):  # most have all cells in common, which is soon seen
        absent = [place for place, here in enumerate(found) if here is None]
        shares = [(-shared(here, place), abs(here - place), place, here) for place in absent for here in left]
        for share, _, place, here in sorted(shares):
            if share < 0 and found[place] is None and here in left:
                found[place] = here
                left.remove(here)
    absent = [place for place, here in enumerate(found) if here is None]
    if len(absent) == len(left):
        for place, here in zip(absent, left, strict=True):
            found[place] = here
    return tuple(found)


def _folded(name: Hashable) -> Hashable:
    return name.casefold() if isinstance(name, str) else name

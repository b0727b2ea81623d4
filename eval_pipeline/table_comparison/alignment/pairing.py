"""Which columns and rows of two different tables correspond to each other, for showing them side by side."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from eval_pipeline.table_comparison.alignment.matching import Trial
from eval_pipeline.table_comparison.codes import mixed
from eval_pipeline.table_comparison.table import ComparedTable

if TYPE_CHECKING:
    import numpy as np

    Hashes = np.ndarray[Any, np.dtype[np.uint64]]
    Places = np.ndarray[Any, np.dtype[np.int64]]

_MOST_PAIRED = 80
"""Rows of each side that are compared with each other if no other column tells which correspond."""
_MANY = 10_000
_SAMPLED = 64
"""Of many rows one in so many is looked at first, by its hash, so that it is the same in both tables."""


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


def pair(generated: ComparedTable, expected: ComparedTable) -> Pairing:
    """Pairs columns, then rows as `paired` does; without corresponding columns, no rows correspond."""
    trial = Trial(generated, expected)
    columns = tuple((there, here) for there, here in enumerate(closest_columns(trial)) if here is not None)
    if not columns and (generated.columns or expected.columns):  # rows of which nothing is compared are not the same
        return Pairing((), (), (), tuple(range(len(expected.rows))), tuple(range(len(generated.rows))), {})
    found = {there: trial.hashes(here, there) for there, here in columns}
    rows = paired(list(found.values()), (len(generated.rows), len(expected.rows)))
    same, changed = (
        tuple(sorted(zip(theirs.tolist(), mine.tolist(), strict=True))) for mine, theirs in (rows.same, rows.changed)
    )
    cells = {there: (theirs.tolist(), mine.tolist()) for there, (mine, theirs) in found.items()}
    return Pairing(columns, same, changed, tuple(rows.missing.tolist()), tuple(rows.extra.tolist()), cells)


class RowPairing(NamedTuple):
    """Places of generated rows and of the expected ones to which they correspond, and of those that stay alone."""

    same: "tuple[Places, Places]"
    changed: "tuple[Places, Places]"
    extra: "Places"
    missing: "Places"


def paired(columns: "Sequence[tuple[Hashes, Hashes]]", lengths: tuple[int, int]) -> RowPairing:
    """Pairs rows that are equal, then those that agree in the other columns, then those with the most cells in common.

    The other columns are all but one, or all that have the same cells in both tables.

    Args:
        columns: what the cells of corresponding columns add to the generated and to the expected rows.
        lengths: how many rows there are.
    """
    import numpy as np

    rows: list[Any] = [sum((one[side] for one in columns), np.zeros(lengths[side], np.uint64)) for side in (0, 1)]
    left: list[Any] = [np.arange(length) for length in lengths]

    def taken(places: Any) -> tuple[Any, Any]:
        found = left[0][places[0]], left[1][places[1]]
        left[:] = [np.delete(left[side], places[side]) for side in (0, 1)]
        return found

    same = taken(_matched(*rows))
    odd = [place for place, (one, other) in enumerate(columns) if one.sum() != other.sum()]
    changed = []
    for without in (*([place] for place in range(len(columns))), odd):
        if all(map(len, left)) and 0 < len(without) < len(columns):
            rest = [
                rows[side][left[side]] - sum(columns[place][side][left[side]] for place in without) for side in (0, 1)
            ]
            if _may_match(*rest):
                changed.append(taken(_matched(*rest)))
    some = [[one[side][left[side][:_MOST_PAIRED]] for one in columns] for side in (0, 1)]
    changed.append(taken(_most_in_common(*some, alone=lengths == (1, 1))))
    mine, theirs = (np.concatenate([found[side] for found in changed]) for side in (0, 1))
    order = np.argsort(theirs)
    return RowPairing(same, (mine[order], theirs[order]), left[0], left[1])


def _may_match(rows: "Hashes", others: "Hashes") -> bool:
    """Returns whether some rows may be equal."""
    import numpy as np

    if min(len(rows), len(others)) < _MANY:
        return True
    return bool(np.isin(rows[rows % _SAMPLED == 0], others[others % _SAMPLED == 0]).any())


def _matched(rows: "Hashes", others: "Hashes") -> "tuple[Places, Places]":
    """Returns the places of equal rows, each of several equal ones with one of the others."""
    import numpy as np

    _, one, other = np.intersect1d(_numbered(rows), _numbered(others), assume_unique=True, return_indices=True)
    return one, other


def _numbered(rows: "Hashes") -> "Hashes":
    """Returns hashes in which the second of several equal rows is another than the first, and so on."""
    import numpy as np

    order = rows.argsort(kind="stable")
    ranked = rows[order]
    before = np.arange(len(rows)) - np.searchsorted(ranked, ranked)
    found = np.empty_like(rows)
    found[order] = np.where(before > 0, ranked + mixed(before), ranked)
    return found


def _most_in_common(mine: "list[Hashes]", theirs: "list[Hashes]", *, alone: bool) -> tuple[list[int], list[int]]:
    """Returns places of rows that have at least half of their cells in common, or are the only ones."""
    if not mine:
        return [], []
    common: Any = sum((one[:, None] == other[None, :]).astype(int) for one, other in zip(mine, theirs, strict=True))
    places = (((common > 0) & (2 * common >= len(mine))) | alone).nonzero()
    found: dict[int, int] = {}
    for _, other, one in sorted(zip((-common[places]).tolist(), places[1].tolist(), places[0].tolist(), strict=True)):
        if other not in found and one not in found.values():
            found[other] = one
    return list(found.values()), list(found)


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

"""Tells how two tables differ that are not equal, whatever is overlooked: as little as can be, beside what can be."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

from eval_pipeline.table_comparison.alignment.matching import Trial
from eval_pipeline.table_comparison.alignment.pairing import RowPairing, closest_columns, paired
from eval_pipeline.table_comparison.codes import distinct
from eval_pipeline.table_comparison.numbers import far
from eval_pipeline.table_comparison.relaxations import FORM, NONE, OF_TEXTS, Relaxation, Set, smallest_sets
from eval_pipeline.table_comparison.table import Row

if TYPE_CHECKING:
    import numpy as np

    Flags = np.ndarray[Any, np.dtype[np.bool_]]
    Hashes = np.ndarray[Any, np.dtype[np.uint64]]
    Places = np.ndarray[Any, np.dtype[np.int64]]

_EXAMPLES = 3
_SHOWN = 40
_SHOWN_CELLS = 6
_KEYS = 8
"""Columns of which one or two may name a row."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The closest match of two tables that are not equal.

    Attributes:
        words: in what they differ all the same.
        overlooked: what brings them so close.
        decimals: the least number of decimals that a column is rounded to, if that is overlooked.
    """

    words: str
    overlooked: Set = NONE
    decimals: int | None = None


def closest(trial: Trial) -> tuple[tuple[int | None, ...], Difference]:
    """Returns the closest match of two tables: the places of columns as in `Comparison.columns`, and the difference."""
    import numpy as np

    if trial.turned is not None:
        columns, found = closest(trial.turned)
        return columns, replace(found, overlooked=found.overlooked | {Relaxation.SHAPE})
    generated, expected = trial.generated, trial.expected
    columns = closest_columns(trial)
    pairs = {place: here for place, here in enumerate(columns) if here is not None}
    if not pairs:
        return columns, Difference("no column is like an expected one")
    lengths = len(generated.rows), len(expected.rows)
    # If most rows of large tables are the same, no column is in another form.
    for allowed in (FORM,) if trial.small else (NONE, FORM):
        added = {place: trial.hashes(here, place, allowed) for place, here in pairs.items()}
        rows = paired(list(added.values()), lengths)
        if 2 * len(rows.same[0]) >= min(lengths):
            break
    mine, theirs = (np.concatenate(sides) for sides in zip(rows.same, rows.changed, strict=True))
    overlooked = _of_columns(trial, pairs) | _of_order(expected.ties, mine, theirs)
    rounded: list[int] = []
    differing: dict[int, tuple[int, int, int]] = {}
    for place, here in pairs.items():
        both = rows.changed if allowed == NONE or trial.same(here, place) else (mine, theirs)
        needs, odd, decimals = _needed(trial, here, place, both, allowed)
        overlooked |= needs
        rounded += [] if decimals is None else [decimals]
        if odd.any():
            first = int(odd.argmax())
            differing[place] = int(odd.sum()), int(both[0][first]), int(both[1][first])
    words = [*_of_cells(trial, pairs, added, differing)]
    words += _of_missing_columns(trial, columns)
    words += _of_rows(trial, pairs, added, rows)
    sentence = "; ".join(words) or "the rows are the same, but not their order"
    return columns, Difference(sentence, overlooked, min(rounded, default=None))


def _needed(
    trial: Trial, here: int, there: int, rows: "tuple[Places, Places]", allowed: Set
) -> "tuple[Set, Flags, int | None]":
    """Returns what has to be overlooked for as many cells as can be to be the same in rows that correspond.

    Returns:
        The least such set, in which of the rows cells differ all the same, and the number of decimals that one
        column is rounded to. Nothing is overlooked unless half of the cells that differ are the same then.
    """
    if not allowed or trial.same(here, there):
        one, other = trial.hashes(here, there)
        return NONE, one[rows[0]] != other[rows[1]], None
    mine, theirs = trial.mine[here], trial.theirs[there]
    decimals = mine.relaxed(OF_TEXTS).decimals, theirs.relaxed(OF_TEXTS).decimals

    @cache
    def differing(overlooked: Set) -> "Flags":
        one, other = trial.hashes(here, there, overlooked)
        found: Flags = one[rows[0]] != other[rows[1]]
        if trial.pair(here, there, overlooked):
            return found
        numbers = mine.relaxed(overlooked).floats[rows[0]], theirs.relaxed(overlooked).floats[rows[1]]
        exact = mine.exact or theirs.exact
        found &= far(*numbers, decimals, exact=exact, overlooked=overlooked)
        return found

    least = differing(FORM).sum()
    (needs, *_) = smallest_sets(lambda overlooked: differing(overlooked).sum() <= least, [FORM])
    if 2 * differing(needs).sum() > differing(NONE).sum():
        needs = NONE
    rounded = [places for places in decimals if places is not None and Relaxation.ROUNDING in needs]
    return needs, differing(needs), min(rounded, default=None)


def _of_columns(trial: Trial, pairs: dict[int, int]) -> Set:
    """Returns what columns need that correspond to each other, whatever is in them."""
    generated, expected = trial.generated, trial.expected
    names = ((generated.columns[here], expected.columns[place]) for place, here in pairs.items())
    found = {
        Relaxation.COLUMN_NAMES: any(one != other and None not in (one, other) for one, other in names),
        Relaxation.COLUMN_ORDER: sorted(pairs.values()) != list(pairs.values()),
        Relaxation.SHAPE: generated.shape != expected.shape,
    }
    return frozenset(one for one, is_needed in found.items() if is_needed)


def _of_order(ties: Sequence[int] | None, mine: "Places", theirs: "Places") -> Set:
    """Returns what rows need that correspond to each other, if their order counts."""
    import numpy as np

    places = theirs[mine.argsort()]
    if ties is None or not (np.diff(places) < 0).any():
        return NONE
    lost = bool((np.diff(np.asarray(ties)[places]) < 0).any())
    return frozenset({Relaxation.ROW_ORDER if lost else Relaxation.TIE_ORDER})


def _of_cells(
    trial: Trial,
    pairs: dict[int, int],
    added: "dict[int, tuple[Hashes, Hashes]]",
    differing: dict[int, tuple[int, int, int]],
) -> Iterator[str]:
    """Yields which columns differ in how many of the rows that correspond, with the places of one such pair of rows."""
    generated, expected = trial.generated, trial.expected
    agreeing = [place for place in pairs if place not in differing and expected.columns[place] is not None]
    keys = _keys([(place, added[place][1]) for place in agreeing], len(expected.rows)) if differing else ()
    for place, (count, one, other) in list(differing.items())[:_EXAMPLES]:
        name = "a column" if expected.columns[place] is None else f"column `{expected.columns[place]}`"
        cells = f"{_cell(generated.rows[one][pairs[place]])} for {_cell(expected.rows[other][place])}"
        row = " and ".join(f"`{expected.columns[key]}` is {_cell(expected.rows[other][key])}" for key in keys)
        told = f"{name} differs in {count:,} of {counted(len(expected.rows), 'row', 'rows')}: {cells}"
        yield f"{told} where {row}" if row else told
    if len(differing) > _EXAMPLES:
        yield counted(len(differing) - _EXAMPLES, "more column differs", "more columns differ")


def _keys(columns: "list[tuple[int, Hashes]]", rows: int) -> tuple[int, ...]:
    """Returns the first column, or two, that name a row among several; none if there are none."""
    for size in (1, 2) if rows > 1 else ():
        for chosen in combinations(columns[: _KEYS // size], size):
            if len(distinct(sum(cells for _, cells in chosen))) == rows:
                return tuple(place for place, _ in chosen)
    return ()


def _of_missing_columns(trial: Trial, columns: Sequence[int | None]) -> Iterator[str]:
    absent = [trial.expected.columns[place] for place, here in enumerate(columns) if here is None]
    more = [name for here, name in enumerate(trial.generated.columns) if here not in columns]
    if absent:
        yield f"{counted(len(absent), 'column is', 'columns are')} missing: {listed(absent)}".rstrip(": ")
    if more:
        yield f"{counted(len(more), 'column is', 'columns are')} not expected: {listed(more)}".rstrip(": ")


def _of_rows(
    trial: Trial, pairs: dict[int, int], added: "dict[int, tuple[Hashes, Hashes]]", rows: RowPairing
) -> Iterator[str]:
    """Yields which rows have no counterpart, or repeat."""
    import numpy as np

    mine, theirs = (np.sum([one[side] for one in added.values()], axis=0) for side in (0, 1))
    once = ("repeated row is there once", "repeated rows are there once"), ("row repeats", "rows repeat")
    sides = (
        (trial.expected, list(pairs), rows.missing, theirs, mine, "missing", once[0]),
        (trial.generated, list(pairs.values()), rows.extra, mine, theirs, "not expected", once[1]),
    )
    for table, places, alone, own, others, what, repeated in sides:
        again = np.isin(own[alone], others)
        if (left := alone[~again]).size:
            example = _cells(tuple(table.rows[left[0]][place] for place in places))
            yield f"{counted(len(left), 'row is', 'rows are')} {what}, e.g. {example}"
        if again.any():
            yield counted(int(again.sum()), *repeated)


def counted(number: int, one: str, many: str) -> str:
    """Returns a number with what it counts."""
    return f"{number:,} {one if number == 1 else many}"


def listed(names: Sequence[Hashable]) -> str:
    """Returns the first of some names."""
    named = [f"`{name}`" for name in names if name is not None]
    return ", ".join(named[:_EXAMPLES]) + (", …" if len(named) > _EXAMPLES else "")


def _cells(row: Row) -> str:
    return "(" + ", ".join([*map(_cell, row[:_SHOWN_CELLS]), *["…"][: len(row) - _SHOWN_CELLS]]) + ")"


def _cell(cell: Any) -> str:
    try:
        text = "NULL" if cell is None else str(cell)
    except ValueError:  # Python does not write integers of more than 4,300 digits
        text = "a very large number"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"

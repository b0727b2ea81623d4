"""What may be overlooked when two tables are compared."""

from collections.abc import Callable, Iterable
from enum import StrEnum


class Relaxation(StrEnum):
    """A kind of difference that can be overlooked; the values stand in suites and in the store."""

    EXTRA_COLUMNS = "extra_columns"
    MISSING_COLUMNS = "missing_columns"
    COLUMN_NAMES = "column_names"
    GIVEN_NAMES = "given_names"
    COLUMN_ORDER = "column_order"
    DUPLICATES = "duplicates"
    ROW_ORDER = "row_order"
    TIE_ORDER = "tie_order"
    ROUNDING = "rounding"
    TOLERANCE = "tolerance"
    PERCENT = "percent"
    DATES = "dates"
    TEXT_NUMBERS = "text_numbers"
    CASE = "case"
    WHITE_SPACE = "white_space"
    NULLS = "nulls"
    SHAPE = "shape"


Set = frozenset[Relaxation]

NONE: Set = frozenset()

MILDEST_FIRST = (
    Relaxation.COLUMN_NAMES,
    Relaxation.GIVEN_NAMES,
    Relaxation.COLUMN_ORDER,
    Relaxation.TIE_ORDER,
    Relaxation.WHITE_SPACE,
    Relaxation.CASE,
    Relaxation.TEXT_NUMBERS,
    Relaxation.DATES,
    Relaxation.NULLS,
    Relaxation.ROUNDING,
    Relaxation.SHAPE,
    Relaxation.PERCENT,
    Relaxation.TOLERANCE,
    Relaxation.ROW_ORDER,
    Relaxation.EXTRA_COLUMNS,
    Relaxation.DUPLICATES,
    Relaxation.MISSING_COLUMNS,
)
"""By how much meaning is lost: of several explanations of a difference the mildest is told."""

OF_TEXTS: Set = frozenset(
    {
        Relaxation.WHITE_SPACE,
        Relaxation.CASE,
        Relaxation.TEXT_NUMBERS,
        Relaxation.DATES,
        Relaxation.NULLS,
        Relaxation.PERCENT,
    }
)
"""Those that give cells another key."""

OF_NUMBERS: Set = frozenset({Relaxation.ROUNDING, Relaxation.TOLERANCE, Relaxation.PERCENT})
"""Those that are about pairs of numbers."""

FORM: Set = OF_TEXTS | OF_NUMBERS
"""All that are about cells."""


_MOST_SETS = 8


def smallest_sets(holds: Callable[[Set], bool], stages: Iterable[Set]) -> tuple[Set, ...]:
    """Returns the sets that are minimal under inclusion, those that lose least first; none if nothing is enough.

    What one needs in any case is found first. If that is not enough, one minimal set is found by taking away what can
    go; each further one must lack something of each of those found (the hitting sets of Reiter 1987).

    Args:
        holds: whether it holds under a set; if it does, it does under larger ones.
        stages: the relaxations to try, in growing sets; those of the first set that is enough are tried.
    """
    if holds(NONE):
        return (NONE,)
    relevant = next(filter(holds, stages), None)
    if relevant is None:
        return ()
    needed = frozenset(one for one in relevant if not holds(relevant - {one}))
    if holds(needed):
        return (needed,)
    found: list[Set] = []
    untried: list[Set] = [NONE]
    seen: set[Set] = set()
    while untried and len(found) < _MOST_SETS:
        without = untried.pop(0)
        if without in seen:
            continue
        seen.add(without)
        fitting = next((one for one in found if not one & without), None)
        if fitting is None:
            if not holds(relevant - without):
                continue
            fitting = _shrunk(holds, relevant - without, needed)
            found.append(fitting)
        untried += [without | {one} for one in MILDEST_FIRST if one in fitting - needed]
    return tuple(sorted(found, key=_loss))


def _shrunk(holds: Callable[[Set], bool], start: Set, needed: Set) -> Set:
    left = start
    for one in reversed(MILDEST_FIRST):
        if one in left and one not in needed and holds(left - {one}):
            left -= {one}
    return left


def _loss(found: Set) -> tuple[int, list[int]]:
    return len(found), sorted((MILDEST_FIRST.index(one) for one in found), reverse=True)

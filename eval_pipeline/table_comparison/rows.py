"""Compares rows under fixed columns, or under any order of columns that fits several tables.

Small tables are compared by the thousand, so that what their keys decide is decided without arrays.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal

from eval_pipeline.table_comparison.alignment.matching import TooManyOrdersError, Trial
from eval_pipeline.table_comparison.cells import key_of
from eval_pipeline.table_comparison.relaxations import Relaxation, Set
from eval_pipeline.table_comparison.table import ComparedTable, Row, Rows

_INEXACT = (float, Decimal)
_TIES: Set = frozenset({Relaxation.TIE_ORDER})
_IN_ANY_ORDER: Set = frozenset({Relaxation.COLUMN_NAMES, Relaxation.COLUMN_ORDER, Relaxation.TIE_ORDER})

__all__ = ["TooManyOrdersError", "column_choices", "column_orders", "equal", "same_rows"]


def equal(generated: ComparedTable, expected: ComparedTable, overlooked: Collection[Relaxation]) -> bool:
    """Returns whether two tables are equal if this is overlooked, as `compare(…).accepted` does, but sooner."""
    return Trial(generated, expected).fit(frozenset(overlooked)) is not None


def same_rows(generated: Rows, expected: Rows, ties: Sequence[int] | None = None) -> bool:
    """Returns whether rows are the same, with the columns as they stand and whatever they are called.

    Args:
        generated: rows.
        expected: rows.
        ties: groups of tied expected rows (`Table.ties`), within which any order will do; None if the order of rows
            has no meaning.
    """
    if len(generated) != len(expected):
        return False
    if not generated:
        return True
    if len(generated[0]) != len(expected[0]):
        return False
    for start, end in _groups(ties) if ties is not None else [(0, len(expected))]:
        same = _same_keys(generated[start:end], expected[start:end])
        if same is None:
            names = (None,) * len(expected[0])
            groups = None if ties is None else tuple(ties)
            return equal(ComparedTable(names, generated), ComparedTable(names, expected, groups), _TIES)
        if not same:
            return False
    return True


def _same_keys(generated: Rows, expected: Rows) -> bool | None:
    """Returns whether rows are the same as multisets; None if that depends on how close numbers are."""
    mine, theirs = Counter(map(_key, generated)), Counter(map(_key, expected))
    if mine == theirs:
        return True
    for odd in (mine - theirs, theirs - mine):
        if not any(isinstance(cell, _INEXACT) for row in odd for cell in row):
            return False
    return None


def _key(row: Row) -> Row:
    return tuple(map(key_of, row))


def _groups(ties: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for place in range(1, len(ties) + 1):
        if place == len(ties) or ties[place] != ties[start]:
            yield start, place
            start = place


def column_orders(tables: Sequence[tuple[ComparedTable, ComparedTable]], *, every: bool) -> Iterator[tuple[int, ...]]:
    """Yields the orders of columns in which each generated table is equal to its expected one.

    An order says for each expected column the place of the generated one; those near the given order come first.

    Args:
        tables: pairs of a generated and an expected table, all with the same number of columns, each with the same
            number of rows; the first should be those that rule out most. Ties may be in any order.
        every: whether to yield also orders that differ only in columns with the same cells.

    Raises:
        TooManyOrdersError: there are too many to try them all.
    """
    width = len(tables[0][1].columns)
    if not _may_fit(tables, width):
        return
    names = (None,) * width
    mine: list[Row] = []
    theirs: list[Row] = []
    ties: list[int] = []
    for generated, expected in tables:
        start = ties[-1] + 1 if ties else 0
        mine += generated.rows
        theirs += expected.rows
        ties += [start + group for group in expected.ties or (0,) * len(expected.rows)]
    yield from Trial(ComparedTable(names, mine), ComparedTable(names, theirs, tuple(ties))).orders(
        _IN_ANY_ORDER, every=every
    )


def column_choices(generated: ComparedTable, expected: ComparedTable, overlooked: Set) -> Iterator[tuple[int, ...]]:
    """Yields, for each expected column, the place of a generated one, in every way in which the tables are equal.

    Args:
        generated: one.
        expected: the other.
        overlooked: what is overlooked, without missing columns and shapes.

    Raises:
        TooManyOrdersError: there are too many to try them all.
    """
    yield from Trial(generated, expected).orders(overlooked, every=True)


def _may_fit(tables: Sequence[tuple[ComparedTable, ComparedTable]], width: int) -> bool:
    """Returns whether the columns of each pair have the same cells in some order, as far as keys decide that."""
    for generated, expected in tables:
        sides = [[Counter(map(key_of, cells)) for cells in table.cells()] for table in (generated, expected)]
        exact = [
            Counter(frozenset(bag.items()) for bag in side if not any(isinstance(key, _INEXACT) for key in bag))
            for side in sides
        ]
        rest = width - min(exact[0].total(), exact[1].total())
        # Whole floats are in the one column and integers in the other.
        if (exact[0] - exact[1]).total() > rest or (exact[1] - exact[0]).total() > rest:
            return False
    return True

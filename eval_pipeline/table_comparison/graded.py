"""How much of a table is right, and which rows are not: for scores between 0 and 1, and for showing."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from math import isfinite
from typing import Any

from eval_pipeline.table_comparison.alignment.assignment import most_in_common
from eval_pipeline.table_comparison.alignment.matching import Trial
from eval_pipeline.table_comparison.cells import key_of
from eval_pipeline.table_comparison.table import ComparedTable, Row, Rows

_MOST_ASSIGNED = 400
_LARGEST_EXACT = 2**53
_CENTS = 2


def soft_f1(generated: Rows, expected: Rows) -> float:
    """Returns F1 over cells, with rows matched to have the most cells in common, whatever their position.

    Cells of two matched rows are compared as multisets, so the order of columns does not matter. Two results without
    cells are equal: 1.0.
    """
    total = sum(map(len, generated)) + sum(map(len, expected))
    if not total:
        return 1.0
    mine, theirs = [_bag(row) for row in generated], [_bag(row) for row in expected]
    common = Counter(mine) & Counter(theirs)
    right = sum(count * sum(number for _, number in bag) for bag, count in common.items())
    # of rows that are not equal, only the first count if there are too many
    right += most_in_common(_without(mine, common)[:_MOST_ASSIGNED], _without(theirs, common)[:_MOST_ASSIGNED])
    return float(2 * right / total)


def common_cells(generated: Sequence[Any], expected: Sequence[Any]) -> int:
    """Returns how many cells two columns have in common as multisets: each expected one is matched once."""
    if Counter(map(key_of, generated)) == Counter(map(key_of, expected)):
        return len(expected)
    one = Trial(
        ComparedTable((None,), [(cell,) for cell in generated]), ComparedTable((None,), [(cell,) for cell in expected])
    )
    mine, theirs = one.hashes(0, 0)
    return (Counter(mine.tolist()) & Counter(theirs.tolist())).total()


def only_in_one(generated: Rows, expected: Rows) -> tuple[list[int], list[int]]:
    """Returns the positions of generated rows that are not expected, and of expected rows that are missing.

    Rows are compared as multisets, and numbers to six digits.
    """
    mine, theirs = [tuple(map(_rough_key, row)) for row in generated], [tuple(map(_rough_key, row)) for row in expected]
    return unmatched(mine, theirs), unmatched(theirs, mine)


def unmatched(rows: list[Any], others: list[Any]) -> list[int]:
    """Returns the places of rows that `others` does not have, as multisets."""
    left = Counter(others)
    found = []
    for place, row in enumerate(rows):
        if left[row] > 0:
            left[row] -= 1
        else:
            found.append(place)
    return found


def _rough_key(cell: Any) -> Any:
    """Returns a key that is also equal for close floats, except for some at the border between two keys."""
    key = key_of(cell)
    if not isinstance(key, float | Decimal):
        return key
    short = -_LARGEST_EXACT < key < _LARGEST_EXACT and round(key, _CENTS) == key
    return float(key) if short or not isfinite(key) else float(f"{key:.6g}")


def _without(bags: list[frozenset[Any]], common: Counter[frozenset[Any]]) -> list[frozenset[Any]]:
    left = common.copy()
    kept = []
    for bag in bags:
        if left[bag] > 0:
            left[bag] -= 1
        else:
            kept.append(bag)
    return kept


def _bag(row: Row) -> frozenset[Any]:
    return frozenset(Counter(_rough_key(cell) for cell in row).items())

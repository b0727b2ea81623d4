"""Compares the results of two queries: rows as multisets, columns in any order, cells as in `cells`."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sql_equivalence.cells import NUMBERS, key_of, rough_key, same_number
from eval_pipeline.sql_equivalence.column_orders import orders, sides
from eval_pipeline.table_comparison import Comparison, Relaxation, Table, compare
from eval_pipeline.table_comparison.relaxations import Set

_MOST_ORDERS = 24
_MOST_ASSIGNED = 400

Row = tuple[Any, ...]
Rows = Sequence[Row]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a query.

    Attributes:
        columns: names.
        rows: in the engine's order.
        ties: for each row the number of its group, in ascending order; rows that the outermost ORDER BY does not
            distinguish share a group. None if the order of rows has no meaning.
    """

    columns: tuple[str, ...]
    rows: list[Row]
    ties: tuple[int, ...] | None = None


EQUAL: Set = frozenset({Relaxation.COLUMN_NAMES, Relaxation.COLUMN_ORDER, Relaxation.TIE_ORDER})
"""What is overlooked in results that count as equal."""


TIES: Set = frozenset({Relaxation.TIE_ORDER})
_FORMS: Set = frozenset({Relaxation.DUPLICATES, Relaxation.ROW_ORDER, Relaxation.ROUNDING, Relaxation.TOLERANCE})
"""In what two queries of one meaning may differ on further databases; columns and cells are settled by the data."""


@dataclass(frozen=True, slots=True)
class Overlooked:
    """In what two results may differ and still agree.

    Attributes:
        relaxations: beyond `EQUAL`.
        columns: for each expected column the position of the generated one that stands for it, None for one that is
            missing; None if that is not known.
    """

    relaxations: Set = frozenset()
    columns: tuple[int | None, ...] | None = None

    def agree(self, generated: Result, expected: Result) -> bool:
        """Returns whether two results are equal but for what is overlooked."""
        return compared(*self._cut(generated, expected)).accepted(self.relaxations | EQUAL)

    def widened(self, generated: Result, expected: Result) -> "Overlooked | None":
        """Returns what also makes these two results equal; None if only what says something about meaning does."""
        mine, theirs = self._cut(generated, expected)
        found = [one for one in compared(mine, theirs).needs if one <= self.relaxations | EQUAL | _FORMS]
        added = self.relaxations | found[0] if found else self.relaxations
        return None if added == self.relaxations else Overlooked(added, self.columns)

    def _cut(self, generated: Result, expected: Result) -> tuple[Result, Result]:
        """Returns both with those columns only that stand for each other."""
        if self.columns is None:
            return generated, expected
        pairs = [(mine, place) for place, mine in enumerate(self.columns) if mine is not None]
        return _chosen(generated, [mine for mine, _ in pairs]), _chosen(expected, [place for _, place in pairs])


def compared(generated: Result, expected: Result) -> Comparison:
    """Returns what has to be overlooked for two results to be equal, whatever their columns are called."""
    mine, theirs = Table(generated.columns, generated.rows), Table(expected.columns, expected.rows, expected.ties)
    found = compare(mine, theirs)
    needs = dict.fromkeys(one - {Relaxation.COLUMN_NAMES} for one in found.needs)
    return replace(found, needs=tuple(needs))


def overlooking(found: Comparison, expected: Result) -> Overlooked | None:
    """Returns the mildest of what makes two results equal; None if nothing does."""
    if not found.needs:
        return None
    return Overlooked(found.needs[0], found.columns if expected.rows else None)


def _chosen(result: Result, places: Sequence[int]) -> Result:
    rows = [tuple(row[place] for place in places) for row in result.rows]
    return Result(tuple(result.columns[place] for place in places), rows, result.ties)


def same_rows(generated: Rows, expected: Rows, ties: Sequence[int] | None = None) -> bool:
    """Returns whether two results are equal, with columns in the given order.

    Args:
        generated: rows.
        expected: rows.
        ties: groups of tied expected rows, see `Result`; None compares multisets.
    """
    if len(generated) != len(expected):
        return False
    if ties is None:
        return _same_multiset(generated, expected)
    return all(_same_multiset(generated[start:end], expected[start:end]) for start, end in _groups(ties))


class ColumnMatch:
    """An order of columns in which the results of two queries are equal on every database seen so far."""

    def __init__(self, overlooked: Overlooked | None = None) -> None:
        """Begins; with `overlooked`, results agree by it and any order of columns fits."""
        self._overlooked = overlooked
        self._seen: list[tuple[Rows, Result]] = []
        self._order: tuple[int, ...] | None = None

    @property
    def order(self) -> tuple[int, ...] | None:
        """For each expected column, the position of the matching generated column; None before any result."""
        return self._order

    def copy(self) -> "ColumnMatch":
        """Returns an independent copy."""
        other = ColumnMatch(self._overlooked)
        other._seen, other._order = list(self._seen), self._order
        return other

    def agrees(self, generated: Result, expected: Result) -> bool:
        """Returns whether such an order still exists with these results; if not, they are not stored.

        Raises:
            SqlError: too many orders are possible to try them all.
        """
        if self._overlooked is not None:
            return self._overlooked.agree(generated, expected)
        width = len(expected.columns)
        if len(generated.columns) != width or len(generated.rows) != len(expected.rows):
            return False
        order = self._order if self._order is not None else tuple(range(width))
        if not same_rows(reordered(generated.rows, order), expected.rows, expected.ties):
            found = next(_fitting([*self._seen, (generated.rows, expected)], width, every=False), None)
            if found is None:
                return False
            order = found
        self._order = order
        self._seen.append((generated.rows, expected))
        return True

    def orders(self) -> tuple[tuple[int, ...], ...] | None:
        """Returns every order that fits all results seen; None if there is no result yet, or too many orders fit.

        Results that are empty, or whose columns have the same values, fit many orders; only further databases can then
        tell which one is right.
        """
        if not self._seen:
            return None
        fitting = _fitting(self._seen, len(self._seen[0][1].columns), every=True)
        try:
            found = tuple(islice(fitting, _MOST_ORDERS + 1))
        except SqlError:
            return None
        return found if 0 < len(found) <= _MOST_ORDERS else None


def _fitting(results: Sequence[tuple[Rows, Result]], width: int, *, every: bool) -> Iterator[tuple[int, ...]]:
    """Yields orders of columns that fit all results. Raises a SqlError if there are too many to try."""
    keys = [sides(rows, expected.rows, expected.ties, width) for rows, expected in reversed(results)]
    for order in orders(keys, width, every=every):
        if all(same_rows(reordered(rows, order), expected.rows, expected.ties) for rows, expected in results):
            yield order


def reordered(rows: Rows, order: Sequence[int]) -> list[Row]:
    """Returns rows with their columns in another order."""
    if tuple(order) == tuple(range(len(order))):
        return list(rows)
    return [tuple(row[place] for place in order) for row in rows]


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
    right += _assigned(_without(mine, common), _without(theirs, common))
    return float(2 * right / total)


def only_in_one(generated: Rows, expected: Rows) -> tuple[list[int], list[int]]:
    """Returns the positions of generated rows that are not expected, and of expected rows that are missing.

    Rows are compared as multisets, and numbers to six digits.
    """
    mine, theirs = [tuple(map(rough_key, row)) for row in generated], [tuple(map(rough_key, row)) for row in expected]
    return _unmatched(mine, theirs), _unmatched(theirs, mine)


def _unmatched(rows: list[Row], others: list[Row]) -> list[int]:
    left = Counter(others)
    found = []
    for place, row in enumerate(rows):
        if left[row] > 0:
            left[row] -= 1
        else:
            found.append(place)
    return found


def _assigned(mine: list[frozenset[Any]], theirs: list[frozenset[Any]]) -> int:
    """Returns the most cells in common under any matching of rows; only the first rows count if there are too many."""
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    mine, theirs = mine[:_MOST_ASSIGNED], theirs[:_MOST_ASSIGNED]
    if not mine or not theirs:
        return 0
    counts = [Counter(dict(bag)) for bag in theirs]
    overlap = np.array([[(Counter(dict(bag)) & other).total() for other in counts] for bag in mine])
    rows, columns = linear_sum_assignment(overlap, maximize=True)
    return int(overlap[rows, columns].sum())


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
    return frozenset(Counter(rough_key(cell) for cell in row).items())


def _same_multiset(generated: Rows, expected: Rows) -> bool:
    mine, theirs = Counter(map(_row_key, generated)), Counter(map(_row_key, expected))
    if mine == theirs:
        return True
    more, less = list((mine - theirs).elements()), list((theirs - mine).elements())
    if len(more) != len(less):
        return False
    # The rest may differ in the last digits of floats; rows are compared whose other cells are equal.
    by_rest: defaultdict[Row, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((more, less)):
        for row in rows:
            by_rest[tuple("number" if isinstance(cell, NUMBERS) else ("value", cell) for cell in row)][side].append(row)
    return all(_close_pairs(ours, others) for ours, others in by_rest.values())


def _close_pairs(mine: list[Row], theirs: list[Row]) -> bool:
    """Returns whether rows can be paired so that all their numbers are close."""
    if len(mine) != len(theirs):
        return False
    left = sorted(theirs, key=_numbers)
    for row in sorted(mine, key=_numbers):
        found = next((place for place, other in enumerate(left) if _close(row, other)), None)
        if found is None:
            return False
        left.pop(found)
    return True


def _numbers(row: Row) -> tuple[float, ...]:
    return tuple(float(cell) for cell in row if isinstance(cell, NUMBERS))


def _close(row: Row, other: Row) -> bool:
    return all(
        mine == theirs or (isinstance(mine, NUMBERS) and isinstance(theirs, NUMBERS) and same_number(mine, theirs))
        for mine, theirs in zip(row, other, strict=True)
    )


def _row_key(row: Row) -> Row:
    return tuple(map(key_of, row))


def _groups(ties: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for place in range(1, len(ties) + 1):
        if place == len(ties) or ties[place] != ties[start]:
            yield start, place
            start = place

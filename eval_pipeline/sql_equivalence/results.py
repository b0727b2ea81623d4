"""Comparing the results of two queries: multisets of rows, columns in any order, floats within a tolerance.

Values are compared as the engines do: 1 equals 1.0 and true, NULL equals NULL, a date equals midnight of its day.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isclose, isinf, isnan
from typing import Any

RELATIVE_TOLERANCE = 1e-6
_ABSOLUTE_TOLERANCE = 1e-12  # what is left where floats that should be equal are subtracted
_MOST_PERMUTATIONS = 5_000
_MOST_ASSIGNED = 400

Row = tuple[Any, ...]
Rows = Sequence[Row]


@dataclass(frozen=True, slots=True)
class Result:
    """What a query gave.

    Attributes:
        columns: names.
        rows: in the engine's order.
        ties: for each row the number of its group of rows that the outermost ORDER BY does not tell apart, rising;
            None where the order of rows means nothing.
    """

    columns: tuple[str, ...]
    rows: list[Row]
    ties: tuple[int, ...] | None = None


def same_rows(generated: Rows, expected: Rows, ties: Sequence[int] | None = None) -> bool:
    """Whether two results are equal, their columns taken in the order they have.

    Args:
        generated: rows.
        expected: rows.
        ties: of the expected rows, see `Result`; None compares multisets.
    """
    if len(generated) != len(expected):
        return False
    if ties is None:
        return _same_multiset(generated, expected)
    return all(_same_multiset(generated[start:end], expected[start:end]) for start, end in _groups(ties))


class ColumnMatch:
    """One order of columns under which the results of two queries are equal on every database seen so far."""

    def __init__(self) -> None:
        self._seen: list[tuple[Rows, Result]] = []
        self._order: tuple[int, ...] | None = None

    @property
    def order(self) -> tuple[int, ...] | None:
        """For each expected column the place of its match among the generated ones; None before any result."""
        return self._order

    def copy(self) -> "ColumnMatch":
        """One that goes its own way from here."""
        other = ColumnMatch()
        other._seen, other._order = list(self._seen), self._order
        return other

    def agrees(self, generated: Result, expected: Result) -> bool:
        """Whether there still is such an order with these results; if not, they are not kept."""
        width = len(expected.columns)
        if len(generated.columns) != width or len(generated.rows) != len(expected.rows):
            return False
        order = self._order if self._order is not None else tuple(range(width))
        if not same_rows(reordered(generated.rows, order), expected.rows, expected.ties):
            found = self._another([*self._seen, (generated.rows, expected)], width)
            if found is None:
                return False
            order = found
        self._order = order
        self._seen.append((generated.rows, expected))
        return True

    @staticmethod
    def _another(results: list[tuple[Rows, Result]], width: int) -> tuple[int, ...] | None:
        """The first order that fits all results, of at most so many tried."""
        candidates = [set(range(width)) for _ in range(width)]
        for rows, expected in results:
            mine = [_profile(row[place] for row in rows) for place in range(width)]
            theirs = [_profile(row[place] for row in expected.rows) for place in range(width)]
            for place in range(width):
                candidates[place] = {other for other in candidates[place] if _may_match(mine[other], theirs[place])}
        for number, order in enumerate(_orders(candidates)):
            if number >= _MOST_PERMUTATIONS:
                return None
            if all(same_rows(reordered(rows, order), expected.rows, expected.ties) for rows, expected in results):
                return order
        return None


def reordered(rows: Rows, order: Sequence[int]) -> list[Row]:
    """Rows with their columns in another order."""
    if tuple(order) == tuple(range(len(order))):
        return list(rows)
    return [tuple(row[place] for place in order) for row in rows]


def soft_f1(generated: Rows, expected: Rows) -> float:
    """F1 over cells, rows matched for the most cells in common, wherever they stand.

    Cells of two matched rows are compared as multisets, so that the order of columns means nothing. Two results without
    a cell are equal: 1.0.
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
    """Places of generated rows that the expected ones lack, and the reverse, as multisets; numbers to six digits."""
    mine, theirs = [tuple(map(_rough, row)) for row in generated], [tuple(map(_rough, row)) for row in expected]
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
    """The most cells in common that any matching of rows gives; of the first rows only where there are too many."""
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
    return frozenset(Counter(_rough(cell) for cell in row).items())


def _same_multiset(generated: Rows, expected: Rows) -> bool:
    mine, theirs = Counter(map(_row_key, generated)), Counter(map(_row_key, expected))
    if mine == theirs:
        return True
    more, less = list((mine - theirs).elements()), list((theirs - mine).elements())
    if len(more) != len(less):
        return False
    # What is left may differ in the last digits of floats; rows are compared where all else is equal.
    by_rest: defaultdict[Row, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((more, less)):
        for row in rows:
            by_rest[tuple(float if isinstance(cell, float) else cell for cell in _floats(row))][side].append(row)
    return all(_close_pairs(ours, others) for ours, others in by_rest.values())


def _floats(row: Row) -> Iterator[Any]:
    """Cells with every number but a whole one as a float, and whole ones too where both could be compared."""
    return (float(cell) if isinstance(cell, int | float) else cell for cell in row)


def _close_pairs(mine: list[Row], theirs: list[Row]) -> bool:
    """Whether rows can be paired so that all their numbers are close."""
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
    return tuple(float(cell) for cell in row if isinstance(cell, int | float))


def _close(row: Row, other: Row) -> bool:
    return all(
        mine == theirs
        or (isinstance(mine, int | float) and isinstance(theirs, int | float) and _close_numbers(mine, theirs))
        for mine, theirs in zip(row, other, strict=True)
    )


def _row_key(row: Row) -> Row:
    return tuple(map(_key, row))


def _key(cell: Any) -> Any:
    """A value that is hashable, and equal where the engines call cells equal."""
    if cell is None or isinstance(cell, str | int):
        return cell  # in Python too true is 1
    if isinstance(cell, float | Decimal):
        number = float(cell)
        if isnan(number):
            return "NaN", "number"
        return int(number) if not isinf(number) and number.is_integer() else number
    if isinstance(cell, datetime):
        return cell if cell.tzinfo is None else cell.astimezone(UTC).replace(tzinfo=None)
    if isinstance(cell, date):
        return datetime(cell.year, cell.month, cell.day)
    if isinstance(cell, list | tuple):
        return ("list", *map(_key, cell))
    if isinstance(cell, dict):
        return ("struct", *((name, _key(item)) for name, item in cell.items()))
    return cell


def _rough(cell: Any) -> Any:
    """A key under which close floats are equal, but for those at the border of two."""
    key = _key(cell)
    return float(f"{key:.6g}") if isinstance(key, float) else key


def _profile(cells: Iterable[Any]) -> tuple[Counter[Any], list[float]]:
    """A column whatever the order of its rows: values that are no numbers, and its numbers, sorted."""
    keys = [_key(cell) for cell in cells]
    numbers = sorted(float(key) for key in keys if isinstance(key, int | float))
    return Counter(key for key in keys if not isinstance(key, int | float)), numbers


def _may_match(mine: tuple[Counter[Any], list[float]], theirs: tuple[Counter[Any], list[float]]) -> bool:
    return mine[0] == theirs[0] and len(mine[1]) == len(theirs[1]) and all(map(_close_numbers, mine[1], theirs[1]))


def _close_numbers(one: float, other: float) -> bool:
    return isclose(one, other, rel_tol=RELATIVE_TOLERANCE, abs_tol=_ABSOLUTE_TOLERANCE)


def _orders(candidates: list[set[int]]) -> Iterator[tuple[int, ...]]:
    """Every way to take a different candidate for each place, those nearest to the given order first."""

    def extend(chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        place = len(chosen)
        if place == len(candidates):
            yield chosen
            return
        for other in sorted(candidates[place] - set(chosen), key=lambda other: (other != place, other)):
            yield from extend((*chosen, other))

    return extend(())


def _groups(ties: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for place in range(1, len(ties) + 1):
        if place == len(ties) or ties[place] != ties[start]:
            yield start, place
            start = place

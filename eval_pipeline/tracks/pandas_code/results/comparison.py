"""Whether a result is the expected one, and how much of it is where it is not."""

import math
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, TypeGuard

from eval_pipeline.core.values import value
from eval_pipeline.tracks.pandas_code.results.result_table import ResultColumn, ResultTable, read_result

RELATIVE = 1e-6
ABSOLUTE = 1e-12
"""For noise around zero, where nothing is relatively close."""
_SAME = 1e-12
_LARGEST = sys.float_info.max
NOT_EQUAL_AT_MOST = 0.99

Cells = Sequence[Hashable]


@value
class ResultComparison:
    """How a result compares with the expected one.

    Attributes:
        equal: it is the same result.
        precision: matched cells / generated cells; 0 where there are none.
        recall: matched cells / expected cells; 0 where there are none.
        why: the first difference in a few words; empty where it is equal.
    """

    equal: bool
    precision: float
    recall: float
    why: str

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    @property
    def score(self) -> float:
        """Correctness: 1 where it is equal, else F1 of the cells, at most 0.99."""
        return 1.0 if self.equal else min(self.f1, NOT_EQUAL_AT_MOST)


@value
class _Pair:
    """A generated column and the expected one that it stands for."""

    name: Hashable
    generated: Cells
    expected: Cells


def compare(
    generated: Any, expected: Any, *, ordered: bool = False, order_keys: Sequence[str] = ()
) -> ResultComparison:
    """Compares two results in the sandbox's tagged JSON (`Ran.result`).

    Equal are results with the same rows, whatever the order of columns and, unless `ordered`, of rows. Floats are equal
    within 1e-6 of the larger one (two whole numbers only if at least one of each column's sides has no integers only),
    every kind of missing value is, and values that differ in their dtype alone as far as pandas' own comparison with
    `check_dtype=False` says so. The index counts where the expected one carries keys: it has a name or labels; they may
    also come as columns. A list, an array, a Series and a frame of one column with the same values are equal; a single
    value and a list of one are not.

    Args:
        generated: what the snippet left in `result`.
        expected: the right one.
        ordered: the question asks for an order of the rows.
        order_keys: columns of the expected result that say the order: rows that are equal in them may stand in any
            order. Without them, or where the result lacks one, every row has its place.

    Raises:
        ValueError: the expected result is not in the sandbox's form. A generated one that is not is another result.
    """
    wanted = read_result(expected)
    try:
        got = read_result(generated)
    except ValueError as error:
        return ResultComparison(False, 0.0, 0.0, str(error))
    pairs, missing, extra = _aligned(got, wanted)
    given = sum(len(pair.generated) for pair in pairs) + sum(len(column.cells) for column in extra)
    asked = sum(len(pair.expected) for pair in pairs) + sum(len(column.cells) for column in missing)
    matched = sum(_matches(pair) for pair in pairs)
    why = _difference(got, wanted, pairs, missing, extra) or _row_difference(
        pairs, order_keys if ordered and not wanted.unordered else None
    )
    return ResultComparison(not why, matched / given if given else 0.0, matched / asked if asked else 0.0, why)


def _aligned(got: ResultTable, wanted: ResultTable) -> tuple[list[_Pair], list[ResultColumn], list[ResultColumn]]:
    """Pairs of columns, expected columns that are missing, generated ones that nobody expects."""
    if "frame" in (got.kind, wanted.kind) and got.kind != wanted.kind:
        got, wanted = _as_row_of(got, wanted), _as_row_of(wanted, got)
    columns, levels = list(got.columns), list(got.index)
    pairs, missing = [], []
    keys = [level for level in wanted.index if level.labels]
    for place, column in enumerate([*keys, *wanted.columns]):
        found = _taken(columns, levels, column, place if place < len(keys) else None)
        if found is None:
            missing.append(column)
        else:
            pairs.append(_Pair(column.name, found.cells, column.cells))
    by_place = len(columns) == len(missing) and (len(columns) == 1 or "array" in (got.kind, wanted.kind))
    if by_place and not (got.kind == wanted.kind == "frame") and not any(column in keys for column in missing):
        pairs += [_Pair(e.name, g.cells, e.cells) for g, e in zip(columns, missing, strict=True)]
        return pairs, [], []
    return pairs, missing, columns


def _taken(
    columns: list[ResultColumn], levels: list[ResultColumn], wanted: ResultColumn, level: int | None
) -> ResultColumn | None:
    """Takes the generated column or level that a wanted one names; `level`: it is this level of the index."""
    if level is not None and wanted.name is None:
        # Labels without a name can only be found by their place.
        return levels.pop(0) if levels and levels[0].labels else None
    for places in (levels, columns) if level is not None else (columns, levels):
        for place, column in enumerate(places):
            if column.name == wanted.name and column.name is not None:
                return places.pop(place)
    if level is not None and levels and levels[0].labels and levels[0].name is None:
        return levels.pop(0)
    return None


def _as_row_of(table: ResultTable, frame: ResultTable) -> ResultTable:
    """A Series or dict that tells one row of a frame, by names of its columns, as that row."""
    if table.kind not in ("series", "dict") or frame.rows != 1 or len(table.index) != 1:
        return table
    names, values = table.index[0].cells, table.columns[0].cells
    if len(set(names)) != len(names) or not set(names) & {column.name for column in frame.columns}:
        return table
    row = tuple(ResultColumn(name, (cell,)) for name, cell in zip(names, values, strict=True))
    return ResultTable(table.kind, (), row)


def _difference(
    got: ResultTable,
    wanted: ResultTable,
    pairs: Sequence[_Pair],
    missing: Sequence[ResultColumn],
    extra: Sequence[ResultColumn],
) -> str:
    """What differs in the shape; empty where nothing does."""
    if "value" in (got.kind, wanted.kind) and got.kind != wanted.kind:
        return f"expected a {wanted.kind}, got a {got.kind}"
    if missing:
        return f"missing: {', '.join(_named(column.name) for column in missing)}"
    if extra:
        return f"not asked for: {', '.join(_named(column.name) for column in extra)}"
    if got.rows != wanted.rows:
        if pairs and len(pairs[0].generated) == len(pairs[0].expected):
            return f"expected a {wanted.kind}, got its row as a {got.kind}"
        return f"expected {wanted.rows:,} rows, got {got.rows:,}"
    return ""


def _named(name: Hashable) -> str:
    return "a column without a name" if name is None else str(name)


def _row_difference(pairs: Sequence[_Pair], order_keys: Sequence[str] | None) -> str:
    """What differs in the rows of as many; `order_keys` is None where their order does not matter."""
    if not _same_rows(pairs):
        return "other values"
    if order_keys is not None:
        keys = [pair for pair in pairs if pair.name in order_keys]
        if len(keys) < len(order_keys) or not keys:
            keys = list(pairs)
        if not all(_all_close(pair, range(len(pair.expected)), range(len(pair.expected))) for pair in keys):
            return "another order of rows"
    return ""


def _same_rows(pairs: Sequence[_Pair]) -> bool:
    """Whether the rows are the same as multisets."""
    if all(pair.generated == pair.expected for pair in pairs):
        return True
    snapped = [_snapped(pair) for pair in pairs]
    generated, expected = (list(zip(*columns, strict=True)) for columns in zip(*snapped, strict=True))
    if Counter(generated) == Counter(expected):
        return True
    # Distinct expected values may lie closer together than the tolerance: then what is nearest is not what is meant.
    in_order = [sorted(range(len(rows)), key=lambda row: _sort_key(rows[row])) for rows in (generated, expected)]
    return all(_all_close(pair, *in_order) for pair in pairs)


def _sort_key(row: tuple[Hashable, ...]) -> tuple[list[str], list[float]]:
    """Other cells first: they are the same or not, while numbers are only close."""
    numbers = [float(cell) for cell in row if _is_number(cell)]
    return [repr(cell) for cell in row if not _is_number(cell)], numbers


def _all_close(pair: _Pair, generated: Sequence[int], expected: Sequence[int]) -> bool:
    """Whether a column has the same cells, row by row in the given orders of rows."""
    exact = _exact(pair)
    return all(
        _close(pair.generated[g], pair.expected[e], exact=exact) for g, e in zip(generated, expected, strict=True)
    )


def _close(one: Hashable, other: Hashable, *, exact: bool) -> bool:
    if one == other:
        return True
    if exact or not _is_number(one) or not _is_number(other):
        return False
    return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def _is_number(cell: Hashable) -> TypeGuard[float]:
    """Whether it is a number that can be close to another: finite, and no integer beyond the range of floats."""
    return isinstance(cell, int | float) and -_LARGEST <= cell <= _LARGEST


def _exact(pair: _Pair) -> bool:
    """Whether numbers have to be the same: one side has integers only, and the other nothing but whole numbers.

    Identifiers and years that a missing value made floats are then still told apart.
    """
    sides = [[cell for cell in side if _is_number(cell)] for side in (pair.generated, pair.expected)]
    if not any(all(isinstance(number, int) for number in side) for side in sides):
        return False
    return all(isinstance(number, int) or number.is_integer() for side in sides for number in side)


def _snapped(pair: _Pair) -> tuple[list[Hashable], list[Hashable]]:
    """Generated and expected cells, with numbers that are close made the same."""
    if _exact(pair):
        return list(pair.generated), list(pair.expected)
    numbers = sorted({float(cell) for cell in pair.expected if _is_number(cell)})
    first: dict[float, float] = {}  # of each expected number: the least of those that differ by noise only
    for number in numbers:
        before = next(reversed(first.values()), None)
        first[number] = before if before is not None and math.isclose(number, before, rel_tol=_SAME) else number

    def snap(cell: Hashable) -> Hashable:
        if cell in first:
            return first[cell]
        if not _is_number(cell) or not numbers:
            return cell
        place = bisect_left(numbers, cell)
        nearest = min(numbers[max(0, place - 1) : place + 1], key=lambda number: abs(number - cell))
        return first[nearest] if _close(cell, nearest, exact=False) else cell

    return [snap(cell) for cell in pair.generated], [snap(cell) for cell in pair.expected]


def _matches(pair: _Pair) -> int:
    """Cells in both columns, as multisets: each expected cell is matched once."""
    if Counter(pair.generated) == Counter(pair.expected):
        return len(pair.expected)
    others = [Counter(cell for cell in side if not _is_number(cell)) for side in (pair.generated, pair.expected)]
    generated, expected = (
        sorted(cell for cell in side if _is_number(cell)) for side in (pair.generated, pair.expected)
    )
    exact, at, found = _exact(pair), 0, 0
    for number in generated:
        # What is too small for this number is too small for those after it.
        while at < len(expected) and expected[at] < number and not _close(number, expected[at], exact=exact):
            at += 1
        if at < len(expected) and _close(number, expected[at], exact=exact):
            found, at = found + 1, at + 1
    return found + (others[0] & others[1]).total()

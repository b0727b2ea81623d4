"""Compares a result with the expected one: whether they are equal, and if not, how much is right."""

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any

from eval_pipeline.core.values import value
from eval_pipeline.table_comparison.graded import common_cells
from eval_pipeline.table_comparison.relaxations import NONE, Set
from eval_pipeline.table_comparison.rows import same_rows
from eval_pipeline_plugins.tracks.pandas_code.results.figures import FIGURE, comparable_figures
from eval_pipeline_plugins.tracks.pandas_code.results.forms import AS_IT_STANDS, Form, accepts, ways
from eval_pipeline_plugins.tracks.pandas_code.results.result_table import ResultColumn, ResultTable, read_result

ANOTHER_ORDER = "another order of rows"
"""What `why` says of rows that only stand in another order."""
NOT_EQUAL_AT_MOST = 0.99

Cells = Sequence[Hashable]


@value
class ResultComparison:
    """How a result compares with the expected one.

    Attributes:
        equal: whether it is the same result.
        precision: matched cells / generated cells; 0 if there are none.
        recall: matched cells / expected cells; 0 if there are none.
        why: the first difference in a few words; empty if they are equal.
        needs: the smallest sets of relaxations that make them equal; none if they differ in meaning.
    """

    equal: bool
    precision: float
    recall: float
    why: str
    needs: tuple[Set, ...] = ()

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    @property
    def score(self) -> float:
        """Correctness: 1 if they are equal, else the F1 of the cells, but at most 0.99."""
        return 1.0 if self.equal else min(self.f1, NOT_EQUAL_AT_MOST)


@value
class ColumnPair:
    """A generated column and the expected column that it matches; `name` is that of the expected one."""

    name: Hashable
    generated: Cells
    expected: Cells


@value
class Aligned:
    """Two results, column by column.

    Attributes:
        pairs: columns of both.
        missing: expected columns without a generated one. extra: generated columns that are not expected.
    """

    pairs: Sequence[ColumnPair]
    missing: Sequence[ResultColumn]
    extra: Sequence[ResultColumn]


_Aligned = tuple[list[ColumnPair], list[ResultColumn], list[ResultColumn]]


def align(got: ResultTable, wanted: ResultTable) -> Aligned:
    """Returns which columns of two results correspond to each other."""
    return Aligned(*_aligned(got, wanted))


def compare(
    generated: Any,
    expected: Any,
    *,
    ordered: bool = False,
    order_keys: Sequence[str] = (),
    form: Form = AS_IT_STANDS,
) -> ResultComparison:
    """Compares two results in the sandbox's tagged JSON (`Ran.result`).

    As they stand, results are equal if they have the same rows; the order of columns does not matter, nor does that of
    rows unless `ordered`. Cells are compared as in any tables (docs/table-comparison.md). All kinds of missing
    values are equal, and so are values that differ only in dtype, if pandas' own comparison with
    `check_dtype=False` accepts them. The index counts if the expected index carries keys, i.e. has a name or
    labels; the keys may also be given as columns. A list, an array, a Series and a frame of one column with the
    same values are equal; a single value and a list of one are not. What further forms are overlooked says `form`.

    Args:
        generated: the value that the snippet gave `result`.
        expected: the right result.
        ordered: whether the question asks for an order of the rows.
        order_keys: columns of the expected result that define the order: rows that are equal in them may be in any
            order. Without them, or if the result lacks one, every row has a fixed place.
        form: what is asked of the form of the result.

    Raises:
        ValueError: the expected result is not in the sandbox's form. A generated result that is not counts as
            different.
    """
    if form.by_row and (rows := _in_rows(generated, expected)) is not None:
        generated, ordered = rows, True
    why, (pairs, missing, extra) = _compared(generated, expected, order_keys if ordered else None)
    given = sum(len(pair.generated) for pair in pairs) + sum(len(column.cells) for column in extra)
    asked = sum(len(pair.expected) for pair in pairs) + sum(len(column.cells) for column in missing)
    if not why:  # not counted: of numbers so close that one equals several, each could be paired with the wrong one
        return ResultComparison(True, float(given > 0), float(asked > 0), "", (NONE,))
    matched = sum(common_cells(pair.generated, pair.expected) for pair in pairs)
    shares = matched / given if given else 0.0, matched / asked if asked else 0.0
    wanted = read_result(expected)
    needs = () if wanted.kind == FIGURE else ways(generated, wanted, form, _ties(wanted, ordered, order_keys))
    if any(one <= form.overlooked for one in needs):
        return ResultComparison(True, 1.0, 1.0, "", needs)
    return ResultComparison(False, *shares, why, needs)


def are_equal(
    generated: Any,
    expected: Any,
    *,
    ordered: bool = False,
    order_keys: Sequence[str] = (),
    form: Form = AS_IT_STANDS,
) -> bool:
    """Returns `compare(...).equal`, but does not count what matches, nor find out what is overlooked.

    Raises:
        ValueError: as `compare` does.
    """
    if form.by_row and (rows := _in_rows(generated, expected)) is not None:
        generated, ordered = rows, True
    if not _compared(generated, expected, order_keys if ordered else None)[0]:
        return True
    wanted = read_result(expected)
    if not form.overlooked or wanted.kind == FIGURE:
        return False
    return accepts(generated, wanted, form, _ties(wanted, ordered, order_keys))


def _in_rows(generated: Any, expected: Any) -> Any:
    """Returns a result of one column that nothing labels, with its rows in the order of the expected index.

    None if one of the results has labels, or they do not have as many rows.
    """
    wanted = read_result(expected)
    try:
        got = read_result(generated)
    except ValueError:
        return None
    for table in (got, wanted):
        if len(table.columns) != 1 or table.unordered or any(level.labels for level in table.index):
            return None
    if got.rows != wanted.rows:
        return None
    if not got.index or not wanted.index:
        return generated
    places = {label: place for place, label in enumerate(got.index[0].cells)}
    if got.index[0].cells == wanted.index[0].cells or places.keys() != {*wanted.index[0].cells}:
        return generated
    column = generated["columns"][0] if got.kind == "frame" else generated["values"]
    values = [column["values"][places[label]] for label in wanted.index[0].cells]
    return {"kind": "array", "values": {**column, "values": values}, "shape": [len(values)]}


def _ties(wanted: ResultTable, ordered: bool, order_keys: Sequence[str]) -> list[int] | None:
    """Returns the groups of expected rows whose order does not matter; None if no order does."""
    if not ordered or wanted.unordered:
        return None
    keys = [column.cells for column in (*wanted.index, *wanted.columns) if column.name in order_keys]
    if len(keys) < len(order_keys) or not keys:
        return list(range(wanted.rows))
    rows, groups = list(zip(*keys, strict=True)), [0]
    for before, row in pairwise(rows):
        groups.append(groups[-1] + (before != row))
    return groups[: len(rows)]


def _compared(generated: Any, expected: Any, order_keys: Sequence[str] | None) -> tuple[str, _Aligned]:
    """Returns why two results differ, empty if they do not, and their columns; no columns if they have none to compare.

    Args:
        generated: as for `compare`.
        expected: as for `compare`.
        order_keys: None if the order of rows does not matter.
    """
    wanted = read_result(expected)
    try:
        got = read_result(generated)
    except ValueError as error:
        return str(error), ([], [], [])
    if FIGURE in (got.kind, wanted.kind):
        if [column.name for column in got.columns] != [column.name for column in wanted.columns]:
            return f"expected a {wanted.kind}, got a {got.kind}", ([], [], [])
        (got, wanted), order_keys = comparable_figures(got, wanted), None
    columns = _aligned(got, wanted)
    why = _difference(got, wanted, *columns) or _row_difference(columns[0], None if wanted.unordered else order_keys)
    return why, columns


def _aligned(got: ResultTable, wanted: ResultTable) -> _Aligned:
    """Returns pairs of columns, expected columns that are missing, and generated columns that are not expected."""
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
            pairs.append(ColumnPair(column.name, found.cells, column.cells))
    by_place = len(columns) == len(missing) and (len(columns) == 1 or "array" in (got.kind, wanted.kind))
    if by_place and not (got.kind == wanted.kind == "frame") and not any(column in keys for column in missing):
        pairs += [ColumnPair(e.name, g.cells, e.cells) for g, e in zip(columns, missing, strict=True)]
        return pairs, [], []
    return pairs, missing, columns


def _taken(
    columns: list[ResultColumn], levels: list[ResultColumn], wanted: ResultColumn, level: int | None
) -> ResultColumn | None:
    """Takes the generated column or index level that matches an expected one; `level` is its index level, if any."""
    if level is not None and wanted.name is None:
        # Labels without a name can only be matched by position.
        return levels.pop(0) if levels and levels[0].labels else None
    for places in (levels, columns) if level is not None else (columns, levels):
        for place, column in enumerate(places):
            if column.name == wanted.name and column.name is not None:
                return places.pop(place)
    if level is not None and levels and levels[0].labels and levels[0].name is None:
        return levels.pop(0)
    return None


def _as_row_of(table: ResultTable, frame: ResultTable) -> ResultTable:
    """Converts a Series or dict with the names of a frame's columns to a frame with that one row."""
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
    pairs: Sequence[ColumnPair],
    missing: Sequence[ResultColumn],
    extra: Sequence[ResultColumn],
) -> str:
    """Describes the difference in shape; empty if there is none."""
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


def _row_difference(pairs: Sequence[ColumnPair], order_keys: Sequence[str] | None) -> str:
    """Describes the difference in rows of equal number; `order_keys` is None if their order does not matter."""
    if not _same_rows(pairs):
        return "other values"
    if order_keys is not None:
        keys = [pair for pair in pairs if pair.name in order_keys]
        if len(keys) < len(order_keys) or not keys:
            keys = list(pairs)
        if not _same_rows(keys, in_order=True):
            return ANOTHER_ORDER
    return ""


def _same_rows(pairs: Sequence[ColumnPair], *, in_order: bool = False) -> bool:
    """Returns whether the rows under some columns are the same, as multisets unless `in_order`."""
    generated, expected = (
        list(zip(*columns, strict=True))
        for columns in ([pair.generated for pair in pairs], [pair.expected for pair in pairs])
    )
    return same_rows(generated, expected, range(len(expected)) if in_order else None)

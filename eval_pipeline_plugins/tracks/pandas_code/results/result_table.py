"""Converts results of snippets (values, lists, dicts, arrays, Series, frames) to columns of comparable cells."""

import math
import re
import sys
from collections.abc import Hashable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

from eval_pipeline.core.values import value

Kind = Literal["value", "list", "dict", "array", "series", "frame", "figure"]

_TIME = re.compile(r"(?P<seconds>[^.+T]*T[^.+T-]*)(?:\.(?P<fraction>\d+))?(?P<offset>[+-]\d\d:\d\d(?::\d\d)?)?")
_SIGNIFICANT_DIGITS = 9
_MOST_DIGITS = 300
_WIDE = 1 << 64


@value
class ResultColumn:
    """A column, or a level of an index.

    Attributes:
        name: a comparable cell; None if it has no name.
        cells: None for missing values, numbers, texts, and tuples for other values.
        labels: whether its cells label the rows: a named level of an index, one with labels other than positions, or
            the keys of a dict.
    """

    name: Hashable
    cells: tuple[Hashable, ...]
    labels: bool = False


@value
class ResultTable:
    """A result as columns.

    Attributes:
        index: levels of the index, the keys of a dict.
        columns: the values. unordered: whether it is a set.
    """

    kind: Kind
    index: tuple[ResultColumn, ...]
    columns: tuple[ResultColumn, ...]
    unordered: bool = False

    @property
    def rows(self) -> int:
        """Number of rows; a single value is one."""
        return len(self.columns[0].cells) if self.columns else len(self.index[0].cells) if self.index else 0


def read_result(result: Any) -> ResultTable:
    """Reads a table from the sandbox's tagged JSON (`sandbox/inside/encode.py`).

    Raises:
        ValueError: the JSON is malformed; a snippet may have written it itself.
    """
    try:
        table = _read(result)
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ValueError("expected a result of the sandbox, found something else of its kind") from error
    if len({len(column.cells) for column in (*table.index, *table.columns)}) > 1:
        raise ValueError("expected a result of the sandbox, found columns of different lengths")
    return table


def _read(result: Any) -> ResultTable:
    match result:
        case {"kind": "frame", "columns": list() as columns, "index": list() as index}:
            return ResultTable("frame", _index(index), tuple(map(_column, columns)))
        case {"kind": "series", "values": dict() as values, "index": list() as index}:
            return ResultTable("series", _index(index), (_column(values),))
        case {"kind": "array", "values": dict() as values, "shape": list() as shape}:
            return ResultTable("array", (), tuple(_array_columns(_column(values), shape)))
        case {"kind": "figure", "marks": {"columns": list() as columns}}:
            return ResultTable("figure", (), tuple(map(_column, columns)))
        case {"kind": "value", "value": value_json}:
            return _from_value(value_json)
    raise ValueError("an object with `kind` is missing")


def _from_value(told: Any) -> ResultTable:
    match told:
        case {"t": "dict", "v": list() as pairs}:
            keys = ResultColumn(None, tuple(cell(key) for key, _ in pairs), labels=True)
            return ResultTable("dict", (keys,), (ResultColumn(None, tuple(cell(item) for _, item in pairs)),))
        case {"t": "list" | "tuple" | "set" | "frozenset" as kind, "v": list() as items}:
            column = ResultColumn(None, tuple(map(cell, items)))
            return ResultTable("list", (), (column,), unordered=kind in ("set", "frozenset"))
        case {"t": "table", "v": table}:
            return _read(table)
    return ResultTable("value", (), (ResultColumn(None, (cell(told),)),))


def _column(told: Any) -> ResultColumn:
    return ResultColumn(cell(told["name"]), tuple(map(cell, told["values"])))


def _index(levels: Sequence[Any]) -> tuple[ResultColumn, ...]:
    """Returns the levels of an index; integers without a name count as positions of rows."""
    return tuple(
        ResultColumn(
            column.name,
            column.cells,
            labels=len(levels) > 1 or column.name is not None or not all(type(item) is int for item in column.cells),
        )
        for column in map(_column, levels)
    )


def _array_columns(flat: ResultColumn, shape: Sequence[int]) -> Iterator[ResultColumn]:
    """Returns the columns of a row-major array; one of more than two dimensions is a single column."""
    if math.prod(shape) != len(flat.cells):
        raise ValueError("the shape is of another number of cells")
    width = shape[1] if len(shape) == 2 else 1
    for place in range(width if flat.cells else 0):
        yield ResultColumn(None if width == 1 else place, flat.cells[place::width])


def cell(told: Any) -> Hashable:
    """Returns a cell in a form in which cells are equal if pandas calls them equal, except for close floats."""
    if type(told) is int:
        return _number(told)
    match told:
        case {"t": str() as kind, "v": content}:
            return _tagged(kind, content)
        case dict():
            return tuple((key, _nested(item)) for key, item in told.items())
        case list():
            return tuple(map(_nested, told))
    plain: Hashable = told
    return plain


def _tagged(kind: str, content: Any) -> Hashable:
    match kind, content:
        case "float", str():
            return float(content)
        case "decimal", str():
            number = Decimal(content)
            if number.is_nan():
                return None
            # An integer only if it is short: 1E+999999999 would fill the memory.
            whole = number.is_finite() and number.adjusted() < _MOST_DIGITS and number == number.to_integral_value()
            return _number(int(number)) if whole else float(number)
        case "datetime", str():
            return ("datetime", _instant(content))
        case (("list" | "tuple" | "set" | "frozenset"), list()):
            return ("list", *map(_nested, content))
    return (kind, _nested(content))


def _number(told: int) -> Hashable:
    """Returns an integer; beyond 64 bits a float, if possible.

    Any number of wider integers can share one hash (multiples of 2**61 - 1 do), so that comparing them would take
    quadratic time.
    """
    if -_WIDE < told < _WIDE:
        return told
    return float(told) if abs(told) <= sys.float_info.max else ("int", hex(told))


def _nested(told: Any) -> Hashable:
    """Returns a cell within a cell; floats in it count as close only if they agree in their first nine digits."""
    found = cell(told)
    if isinstance(found, float) and math.isfinite(found):
        return float(f"{found:.{_SIGNIFICANT_DIGITS}g}")
    return found


def _instant(text: str) -> str:
    """Returns an ISO time in UTC with nine decimals; a time without a zone counts as UTC, as in pandas."""
    parts = _TIME.fullmatch(text)
    if parts is None:
        return text
    seconds = parts["seconds"]
    if parts["offset"]:
        moment = datetime.fromisoformat(seconds + parts["offset"])
        try:
            seconds = moment.astimezone(UTC).replace(tzinfo=None).isoformat()
        except OverflowError:  # within a day of year 1 or 9999
            return text
    return f"{seconds}.{(parts['fraction'] or '').ljust(9, '0')}"

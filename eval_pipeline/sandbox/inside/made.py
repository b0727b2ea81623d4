"""What a cell of a session has made: its variables with their sizes, and digests of their columns.

Only values of exact types of Python, numpy and pandas are read, as classes of the code may do anything; of others
nothing is told. Nobody trusts what is told: the code may replace all of this, and damages only its own record.
"""

import ast
import hashlib
import json
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

Told = dict[str, Any]
MOST_VARIABLES, MOST_COLUMNS, MOST_BYTES, LONGEST = 30, 24, 16_000, 60
_MOST_CELLS, _MOST_TEXT, _FEW = 100_000, 4_000_000, 12
"""Cells and characters that are read after a cell of code: of more, also copies would take memory that it needs."""
_LARGEST_BITS = 64
_Cells = Collection[Any] | None
_Columns = list[tuple[Any, _Cells]]
"""Names and values; None in their place if they are of no known type, or too many to be looked at."""
_OTHER = "?"
_ALONE = object()
"""In the place of the name of a column: a single value."""


def _ids(*kinds: type) -> frozenset[int]:
    """Returns what tells types apart without asking them: a metaclass may compare and hash as it likes."""
    return frozenset(map(id, kinds))


_SETS, _MAPPINGS = _ids(set, frozenset), _ids(dict, Counter, defaultdict, OrderedDict)
_SEQUENCES, _PLACED = _ids(list, tuple, deque), _ids(list, tuple)
_ZONES, _TEXT, _ROW = _ids(timezone, ZoneInfo), _ids(str), _ids(dict)


def _is(value: object, kinds: frozenset[int]) -> bool:
    return id(type(value)) in kinds


class MadeVariables:
    """Tells after each cell which variables it has made or changed, as far as it names them."""

    def __init__(self, names: dict[str, Any]) -> None:
        """Takes the names of the session, in which nothing has been run yet."""
        import numpy
        import pandas

        self._names, self._known = names, dict[str, Told]()
        self._frames, self._series, self._arrays = pandas.DataFrame, pandas.Series, numpy.ndarray
        self._time, self._ranges = pandas.Timestamp, pandas.RangeIndex
        numbers = [one for one in vars(numpy).values() if isinstance(one, type) and issubclass(one, numpy.generic)]
        self._scalars, self._days = _ids(*numbers), _ids(date, timedelta, pandas.Timedelta)
        holders = (getattr(pandas.arrays, name) for name in dir(pandas.arrays))
        self._holders = _ids(*(one for one in holders if isinstance(one, type)))
        indexes = (getattr(pandas, name) for name in dir(pandas) if name.endswith("Index"))
        self._indexes = _ids(*(one for one in indexes if isinstance(one, type)))
        self._missing = (pandas.NA, pandas.NaT)
        self._left = self._text_left = 0

    def of(self, code: str) -> list[Told]:
        """Returns variables that code names, which are not as they were; see `_told` for their form."""
        found, size = list[Told](), 0
        self._left, self._text_left = _MOST_CELLS, _MOST_TEXT
        for name in _named(code):
            told = self._told(name, self._names[name]) if name in self._names else None
            if told is None or self._known.get(name) == told:
                continue
            if len(found) == MOST_VARIABLES:
                break
            fits = len(json.dumps(told)) <= MOST_BYTES
            short = told if fits else {what: value for what, value in told.items() if what != "values"}
            if size + len(json.dumps(short)) <= MOST_BYTES:
                size += len(json.dumps(short))
                self._known[name] = told
                found.append(short)
        return found

    def _told(self, name: str, value: Any) -> Told | None:
        """Returns what is told of a variable; None if it is of another type.

        That is `name`, `kind`, `rows` (None of a single value), `columns` (of each the name, and a digest of the values
        in any order, empty if there are too many to look at), and of few rows the `values` of each column.
        """
        columns = self._columns(value)
        if columns is None:
            return None
        rows = None if columns and columns[0][0] is _ALONE else len(value)
        told: Told = {"name": _cut(name), "kind": type(value).__name__, "rows": rows, "columns": []}
        texts = [None if cells is None else self._texts(cells) for _, cells in columns]
        for (label, _), cells in zip(columns, texts, strict=True):
            told["columns"].append(["" if label is _ALONE else _cut(self._text(label)), _digest(cells)])
        if (rows or 0) <= _FEW and all(one is not None for one in texts):
            told["values"] = [[_cut(text) for text in cells or ()] for cells in texts]
        return told

    def _columns(self, value: Any) -> _Columns | None:
        """Returns the columns of a value: of tables their own, of a single value one without a name."""
        kind = type(value)
        if _is(value, _SEQUENCES | _SETS | _MAPPINGS):
            if len(value) > self._left:
                return [("", None)]
            if _is(value, _MAPPINGS):
                return _of_mapping(value)
            in_order = _is(value, _SETS) and len(value) <= _FEW
            return _of_rows(sorted(value, key=self._text) if in_order else list(value))
        if kind is self._frames or kind is self._series:
            return [*self._of_index(value.index), *self._of_frame(value)][:MOST_COLUMNS]
        if kind is self._arrays:
            return self._of_array(value)
        return [(_ALONE, [value])] if self._text(value) != _OTHER and value is not None else None

    def _of_frame(self, value: Any) -> Iterator[tuple[Any, _Cells]]:
        if type(value) is self._series:
            yield value.name, self._held(value)
        elif _is(value.columns, self._indexes):
            yield from ((label, self._held(one)) for label, one in islice(value.items(), MOST_COLUMNS))

    def _of_index(self, index: Any) -> Iterator[tuple[Any, _Cells]]:
        if type(index) is self._ranges or not _is(index, self._indexes):
            return
        if index.nlevels == 1:
            yield index.name, self._held(index)
        else:
            for place, label in enumerate(index.names):
                yield label, self._held(index.get_level_values(place))

    def _held(self, column: Any) -> _Cells:
        """Returns the values of a column, which are not copied."""
        array = column.array
        if not _is(array, self._holders) or len(array) > self._left:
            return None
        return array if _is_plain_time(getattr(array, "tz", None)) else None

    def _of_array(self, value: Any) -> _Columns | None:
        if value.ndim not in (1, 2) or value.dtype.names is not None:
            return None
        if value.size > self._left:
            return [("", None)]
        if value.ndim == 1:
            return [("", value.tolist())]
        return [(place, value[:, place].tolist()) for place in range(min(value.shape[1], MOST_COLUMNS))]

    def _texts(self, cells: Collection[Any]) -> list[str] | None:
        """Returns values as texts; None if there are more, or longer ones, than may still be looked at."""
        if len(cells) > self._left:
            return None
        self._left -= len(cells)
        texts = list[str]()
        for one in cells:
            text = one if _is(one, _TEXT) else self._text(one)
            self._text_left -= len(text)
            if self._text_left < 0:
                return None
            texts.append(self._text(text) if text is one else text)
        return texts

    def _text(self, value: Any) -> str:
        """Returns a value as a text that is the same for equal ones, also if one is a number and the other its text."""
        if _is(value, self._scalars):
            value = value.item()
        kind = type(value)
        if kind is str:
            return plain_text(value)
        if kind is int or kind is bool:
            return _number(value) if value.bit_length() <= _LARGEST_BITS else _OTHER
        if kind is float or kind is Decimal:
            is_number = value == value if kind is float else not value.is_nan()  # a Decimal may raise when compared
            return _number(float(value)) if is_number else ""
        if value is None or any(value is one for one in self._missing):
            return ""
        if kind is self._time or kind is datetime:
            return str(value).removesuffix(" 00:00:00") if _is_plain_time(value.tzinfo) else _OTHER
        return str(value) if _is(value, self._days) else _OTHER


def _is_plain_time(zone: Any) -> bool:
    return zone is None or _is(zone, _ZONES)


def plain_text(text: str) -> str:
    """Returns a text without blanks around it, and a number in it as numbers are told."""
    bare = text.strip()
    if bare[:1].isdecimal() or bare[:1] in ("-", "+", "."):
        try:
            return _number(float(bare)) if len(bare) <= LONGEST else bare
        except ValueError:
            return bare
    return bare


def _number(value: float) -> str:
    return f"{value + 0.0:.9g}"


def _named(code: str) -> list[str]:
    """Returns the names in code, in order."""
    try:
        found = [one for one in ast.walk(ast.parse(code)) if isinstance(one, ast.Name)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found.sort(key=lambda one: (one.lineno, one.col_offset))
    return list(dict.fromkeys(one.id for one in found))


def _of_mapping(value: dict[Any, Any]) -> _Columns:
    """Returns keys and values, or keys and the columns of values that are rows."""
    found = list(dict.items(value))
    if found and all(_is(one, _PLACED) and len(one) < MOST_COLUMNS for _, one in found):
        return _of_rows([(key, *one) for key, one in found])
    return [("key", [key for key, _ in found]), ("value", [one for _, one in found])]


def _of_rows(rows: list[Any]) -> _Columns:
    """Returns the columns of rows that are as long as each other, or one column of other things."""
    first: Any = rows[0] if rows else ()
    if _is(first, _PLACED) and first and all(_is(one, _PLACED) and len(one) == len(first) for one in rows):
        return [(place, [one[place] for one in rows]) for place in range(min(len(first), MOST_COLUMNS))]
    are_named = _is(first, _ROW) and first and all(_is(one, _ROW) and _has_names(one) for one in rows)
    if are_named and all(one.keys() == first.keys() for one in rows):
        return [(label, [one[label] for one in rows]) for label in islice(first, MOST_COLUMNS)]
    return [("", rows)]


def _has_names(row: dict[Any, Any]) -> bool:
    """Returns whether all keys are texts, few enough to be looked at and of no class that compares as it likes."""
    return len(row) <= _FEW * MOST_COLUMNS and all(_is(one, _TEXT) for one in row)


def _digest(cells: list[str] | None) -> str:
    if cells is None:
        return ""
    whole = "\x1f".join(sorted(cells)).encode(errors="surrogatepass")
    return hashlib.blake2b(whole, digest_size=6).hexdigest()


def _cut(text: str) -> str:
    return text[:LONGEST].encode("utf-8", "replace").decode()

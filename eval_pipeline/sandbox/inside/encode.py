"""A snippet's result as plain data: tagged JSON, never pickle.

Runs inside the jail, in the process of the snippet: pandas is there, the project is not. `results.py` is the other end.

    {"kind": "frame", "columns": [column, ...], "index": [column, ...], "rows": n}
    {"kind": "series", "values": column, "index": [column, ...]}
    {"kind": "array", "values": column, "shape": [n, ...]}
    {"kind": "figure", "marks": frame}, as `figures.py` says
    {"kind": "value", "value": cell}
    column = {"name": cell, "dtype": "int64", "values": [cell, ...]}

A cell is null (every kind of missing), a boolean, a number, a text, or {"t": type, "v": value} for what JSON lacks.
"""

import datetime
import decimal
import json
import math

import numpy as np
import pandas as pd

from .figures import figure_of, marks_of
from .polars_tables import without_polars

DEEPEST = 50
_ROWS = 50_000


class ResultError(Exception):
    """The result has no form as plain data."""


def encode(result: object, most: float = math.inf) -> bytes:
    """Returns the result as JSON; of one that takes more than `most` bytes perhaps only a part, which takes more too.

    Raises a ResultError if it is nested too deeply or has a type without a plain form.
    """
    told, result = b"", without_polars(result)
    if isinstance(result, (pd.DataFrame, pd.Series, pd.Index, np.ndarray, list, tuple)) and len(result) > _ROWS:
        rows = getattr(result, "iloc", result)
        for start in range(0, len(result), _ROWS):  # all of it could take longer than the code may
            told += _json(_told(rows[start : start + _ROWS]))
            if len(told) > most:
                return told
    return _json(_told(result))


def _json(told: object) -> bytes:
    # Lone surrogates, which UTF-8 cannot represent, become question marks.
    return json.dumps(told, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _told(result: object) -> dict[str, object]:
    result = without_polars(result)
    if isinstance(result, pd.DataFrame):
        return _frame(result)
    if isinstance(result, pd.Series):
        return {"kind": "series", "values": _column(result.name, result), "index": _index(result.index)}
    if isinstance(result, pd.Index | pd.api.extensions.ExtensionArray):
        values = pd.Series(result)
        return {"kind": "array", "values": _column(values.name, values), "shape": [len(values)]}
    if (figure := figure_of(result)) is not None:
        return {"kind": "figure", "marks": _frame(marks_of(figure))}
    if isinstance(result, np.ndarray):
        values = pd.Series(result.ravel())
        return {"kind": "array", "values": _column(None, values), "shape": list(result.shape)}
    return {"kind": "value", "value": _cell(result)}


def _frame(frame: pd.DataFrame) -> dict[str, object]:
    columns = [_column(name, values) for name, values in frame.items()]
    return {"kind": "frame", "columns": columns, "index": _index(frame.index), "rows": len(frame)}


def _index(index: pd.Index) -> list[dict[str, object]]:
    return [
        _column(name, _labels(index.get_level_values(level)))
        for level, name in zip(range(index.nlevels), index.names, strict=True)
    ]


def _labels(level: pd.Index) -> pd.Index | pd.Series:
    """Returns what `_column` tells in the same way as a Series, which takes longer to make; it may infer a type."""
    return pd.Series(level) if level.dtype == object else level


def _column(name: object, values: pd.Series | pd.Index) -> dict[str, object]:
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        cells = [_cell(value) for value in values.tolist()]
    elif pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_integer_dtype(dtype):
        cells = [value if type(value) in (int, bool) else _cell(value) for value in values.tolist()]
    elif pd.api.types.is_float_dtype(dtype):
        cells = [_number(value) for value in values.tolist()]
    else:
        cells = [_cell(value) for value in values.tolist()]
    return {"name": _cell(name), "dtype": str(dtype), "values": cells}


def _number(value: object) -> object:
    if value is pd.NA or value is None:
        return None
    number = float(value)  # type: ignore[arg-type]
    if math.isnan(number):
        return None
    return number if math.isfinite(number) else {"t": "float", "v": "inf" if number > 0 else "-inf"}


def _cell(value: object, depth: int = 0) -> object:
    """Returns one value as JSON; containers keep their type."""
    if type(value) in (str, int) or (type(value) is float and math.isfinite(value)):  # most cells, and fast
        return value
    if depth > DEEPEST:
        raise ResultError(f"the result is nested more than {DEEPEST} deep")
    value = without_polars(value)
    match value:
        case dict():
            pairs = [[_cell(key, depth + 1), _cell(item, depth + 1)] for key, item in value.items()]
            return {"t": "dict", "v": pairs}
        case list() | tuple() | set() | frozenset():
            items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
            kind = next(kind for kind in (list, tuple, set, frozenset) if isinstance(value, kind))
            return {"t": kind.__name__, "v": [_cell(item, depth + 1) for item in items]}
        case pd.DataFrame() | pd.Series() | pd.Index() | np.ndarray():
            return {"t": "table", "v": _told(value)}
    return _plain(value) if isinstance(value, _PLAIN) or value is None or value is pd.NA else _tagged(value)


_PLAIN = (bool, np.bool_, int, np.integer, float, np.floating, str, type(pd.NaT))


def _plain(value: object) -> object:
    """Returns values of the types that JSON has."""
    match value:
        case bool() | np.bool_():
            return bool(value)
        case int() | np.integer():
            return int(value)
        case float() | np.floating():
            return _number(value)
        case str():
            return str(value)
    return None


def _tagged(value: object) -> dict[str, object]:
    """Returns values of other types, with the name of the type."""
    match value:
        case datetime.datetime() | np.datetime64():
            return {"t": "datetime", "v": pd.Timestamp(value).isoformat()}
        case datetime.date() | datetime.time():
            return {"t": type(value).__name__, "v": value.isoformat()}
        case datetime.timedelta() | np.timedelta64():
            return {"t": "timedelta", "v": pd.Timedelta(value).isoformat()}
        case decimal.Decimal():
            return {"t": "decimal", "v": str(value)}
        case complex() | np.complexfloating():
            return {"t": "complex", "v": [_number(value.real), _number(value.imag)]}
        case bytes():
            return {"t": "bytes", "v": value.hex()}
        case pd.Period() | pd.Interval():
            return {"t": type(value).__name__.lower(), "v": str(value)}
    raise ResultError(
        f"a result of type {type(value).__name__} has no plain form; give a value, a Series or a DataFrame"
    )

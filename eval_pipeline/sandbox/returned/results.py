"""Reads the result of a snippet: checks the plain data and converts it to a pandas value.

The form is that of `inside/encode.py`. The data come from a process that may have written anything, so they are
checked in full before use.
"""

import datetime
import decimal
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

from eval_pipeline.core.model import Json

if TYPE_CHECKING:
    import pandas as pd


class _Items(TypedDict):
    t: Literal["list", "tuple", "set", "frozenset"]
    v: list["Cell"]


class _Pairs(TypedDict):
    t: Literal["dict"]
    v: list[Annotated[list["Cell"], Field(min_length=2, max_length=2)]]


class _Infinite(TypedDict):
    t: Literal["float"]
    v: Literal["inf", "-inf"]


class _Complex(TypedDict):
    t: Literal["complex"]
    v: Annotated[list["Cell"], Field(min_length=2, max_length=2)]


class _Text(TypedDict):
    t: Literal["datetime", "date", "time", "timedelta", "decimal", "bytes", "period", "interval"]
    v: str


class _Nested(TypedDict):
    t: Literal["table"]
    v: "Table"


Cell = (
    None
    | bool
    | int
    | Annotated[float, Field(allow_inf_nan=False)]
    | str
    | Annotated[_Items | _Pairs | _Infinite | _Complex | _Text | _Nested, Field(discriminator="t")]
)


class _Column(TypedDict):
    name: Cell
    dtype: str
    values: list[Cell]


class _Frame(TypedDict):
    kind: Literal["frame"]
    columns: list[_Column]
    index: Annotated[list[_Column], Field(min_length=1)]
    rows: int


class _Series(TypedDict):
    kind: Literal["series"]
    values: _Column
    index: Annotated[list[_Column], Field(min_length=1)]


class _Array(TypedDict):
    kind: Literal["array"]
    values: _Column
    shape: list[int]


class _Value(TypedDict):
    kind: Literal["value"]
    value: Cell


def _of_one_length(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the table unchanged. Raises a ValueError if its columns differ in length."""
    values = table["columns"] if table["kind"] == "frame" else [table["values"]]
    columns = [*values, *table.get("index", ())]
    match table["kind"]:
        case "frame":
            rows = table["rows"]
        case "series":
            rows = len(table["values"]["values"])
        case _:
            rows = math.prod(table["shape"])
    if any(len(column["values"]) != rows for column in columns):
        raise ValueError("columns of different lengths")
    return table


Table = Annotated[_Frame | _Series | _Array, Field(discriminator="kind"), AfterValidator(_of_one_length)]


class _Figure(TypedDict):
    kind: Literal["figure"]
    marks: Annotated[_Frame, AfterValidator(_of_one_length)]


class _Error(TypedDict):
    types: Annotated[list[str], Field(min_length=1)]
    message: str
    line: int | None


class _ToldOutcome(TypedDict, total=False):
    result: Table | _Figure | _Value
    error: _Error


@lru_cache(maxsize=1)
def _told() -> TypeAdapter[Any]:
    return TypeAdapter(_ToldOutcome)


def read_told(text: bytes) -> Mapping[str, Json] | None:
    """Returns the outcome that a snippet's process reported: a `result` or an `error`; None if it is malformed."""
    try:
        told: Mapping[str, Json] = _told().validate_json(text, strict=True)
    except ValidationError:
        return None
    return told if len(told) == 1 else None


def as_pandas(result: Json) -> Any:
    """Returns the value that a snippet set: a DataFrame, Series, numpy array or plain value; for a figure its marks.

    It equals the original except for what plain data cannot represent: kinds of missing values (None in object
    columns), unused categories, the name of the column axis, intervals (which become texts) and extension dtypes.
    """
    import pandas as pd

    match result["kind"]:
        case "frame":
            index = _index(result["index"])
            columns = {place: _column(column, index) for place, column in enumerate(result["columns"])}
            frame = pd.DataFrame(columns, index=index)
            frame.columns = _labels([_value(column["name"]) for column in result["columns"]])
            return frame
        case "series":
            series = _column(result["values"], _index(result["index"]))
            series.name = _value(result["values"]["name"])
            return series
        case "figure":
            return as_pandas(result["marks"])
        case "array":
            return _column(result["values"], None).to_numpy().reshape(result["shape"])
    return _value(result["value"])


def _index(levels: Sequence[Mapping[str, Json]]) -> Any:
    import pandas as pd

    names = [_value(level["name"]) for level in levels]
    columns = [_column(level, None) for level in levels]
    if len(levels) == 1:
        return pd.Index(columns[0], name=names[0])
    return pd.MultiIndex.from_arrays(columns, names=names)


def _labels(names: Sequence[Any]) -> Any:
    import pandas as pd

    if names and all(isinstance(name, tuple) and len(name) == len(names[0]) for name in names):
        return pd.MultiIndex.from_tuples(names)
    return pd.Index(names, dtype=None if names else object)


# Only these are made from their names: a dtype such as `S1000000000` would take that much for each cell.
_DTYPE = re.compile(
    r"u?int(8|16|32|64)|U?Int(8|16|32|64)|float(32|64)|Float(32|64)|complex128|bool|boolean|str|string|category"
    r"|timedelta64\[(s|ms|us|ns)\]|datetime64\[(s|ms|us|ns)\]"
)
_ZONED = re.compile(r"datetime64\[(s|ms|us|ns), [\w/+:-]+\]")
_PERIOD = re.compile(r"period\[(?P<frequency>[\w-]+)\]")


def _column(column: Mapping[str, Json], index: "pd.Index[Any] | None") -> "pd.Series[Any]":
    """Returns a Series with the dtype of the column, or with dtype object if the cells do not fit it."""
    import pandas as pd

    cells = [_value(cell) for cell in column["values"]]
    plain = pd.Series(cells, index=index, dtype=object)
    dtype = column["dtype"]
    try:
        if _DTYPE.fullmatch(dtype):
            return plain.astype(dtype)
        if _ZONED.fullmatch(dtype):
            return pd.to_datetime(plain, utc=True).astype(dtype)
        if period := _PERIOD.fullmatch(dtype):
            return plain.map(str, na_action="ignore").astype(pd.PeriodDtype(period["frequency"]))
    except (ValueError, TypeError, OverflowError, KeyError):
        return plain
    return plain


def _value(cell: Json) -> Any:
    """Returns the Python value of a cell."""
    if not isinstance(cell, dict):
        return cell
    return _decoders()[cell["t"]](cell["v"])


@lru_cache(maxsize=1)
def _decoders() -> Mapping[str, Callable[[Any], Any]]:
    import pandas as pd

    return {
        "list": lambda items: [_value(item) for item in items],
        "tuple": lambda items: tuple(_value(item) for item in items),
        "set": lambda items: {_value(item) for item in items},
        "frozenset": lambda items: frozenset(_value(item) for item in items),
        "dict": lambda pairs: {_value(key): _value(item) for key, item in pairs},
        "float": float,
        "complex": lambda parts: complex(_value(parts[0]), _value(parts[1])),
        "datetime": pd.Timestamp,
        "date": datetime.date.fromisoformat,
        "time": datetime.time.fromisoformat,
        "timedelta": pd.Timedelta,
        "decimal": decimal.Decimal,
        "bytes": bytes.fromhex,
        "period": pd.Period,
        "interval": str,
        "table": as_pandas,
    }

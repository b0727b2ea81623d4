"""Reads the rows of a Parquet file as JSON values; pyarrow is imported when one is opened."""

import math
from collections.abc import Iterator, Mapping
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.users_tables import (
    Unreadable,
    UsersTable,
    cells_by_column,
    checked_header,
    named_columns,
    nameless,
)

_NO_TEXT = Unreadable("holds bytes that are not UTF-8 text")
"""Parquet's writers do not check that texts are UTF-8."""
_INDEX = "__index_level_"
"""How columns are named in which pandas writes the index of a table, which has no name of its own."""


def open_rows(path: Path, name: str) -> UsersTable:
    """Opens a Parquet file.

    Raises:
        InputError: the file is no Parquet file, or a column is there twice.
        OSError: the file cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path, pre_buffer=False)  # buffers would keep all of the file in memory
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(name, error) from error
    header = checked_header(["" if found.startswith(_INDEX) else found for found in file.schema_arrow.names], name)
    return UsersTable(named_columns(header), f"Parquet{nameless(header)}", _rows(file, name, header))


def _rows(file: Any, name: str, header: list[str]) -> Iterator[tuple[int, Mapping[str, Json] | Unreadable]]:
    import pyarrow as pa

    number = 0
    try:
        for batch in file.iter_batches(1_000):
            for row in zip(*map(_values, batch.columns), strict=True):
                number += 1
                if cells := cells_by_column(header, row):
                    yield number, cells
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(name, error) from error


def _values(column: Any) -> list[Json | Unreadable]:
    try:
        return [_plain(value) for value in column.to_pylist()]
    except UnicodeDecodeError:
        return [_value(value) for value in column]


def _value(value: Any) -> Json | Unreadable:
    try:
        return _plain(value.as_py())
    except UnicodeDecodeError:
        return _NO_TEXT


def _plain(value: Any) -> Json:
    """Returns a value as JSON: dates and decimals become texts and numbers, whole floats whole numbers."""
    if isinstance(value, Decimal):
        # A decimal with more digits than a number of JSON keeps stays a text.
        if value == value.to_integral_value():
            return float(value) if float(value) == value else int(value)
        return float(value) if Decimal(repr(float(value))) == value else str(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if value is None or isinstance(value, str | int | bool) else str(value)


def _unreadable(name: str, error: Exception) -> InputError:
    return InputError([Problem(name, None, "", f"cannot be read as Parquet: {error}")])

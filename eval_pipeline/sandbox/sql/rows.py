"""Fetches the rows of a result within the limits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.limits import SqlLimits

_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class SqlRows:
    """The result of a query.

    Attributes:
        columns: names, as returned by the engine; there may be duplicates.
        rows: in the engine's order, with values as returned by its Python driver.
        seconds, cpu_seconds: time for executing and fetching.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    seconds: float = 0.0
    cpu_seconds: float = 0.0


def fetch_within(fetch: Callable[[int], Sequence[Any]], limits: SqlLimits) -> list[tuple[Any, ...]]:
    """Returns all rows that `fetch` yields in chunks. Raises a SqlError if they are too many or too large."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    while chunk := fetch(_CHUNK):
        rows += map(tuple, chunk)
        if len(rows) > limits.rows:
            raise SqlError(ErrorClass.MEMORY, f"the result has more than {limits.rows:,} rows")
        size += sum(_size(cell) for row in chunk for cell in row)
        if size > limits.result_bytes:
            raise SqlError(ErrorClass.MEMORY, f"the result is larger than {limits.result_bytes:,} bytes")
    return rows


def _size(cell: Any) -> int:
    if isinstance(cell, str | bytes):
        return len(cell)
    if isinstance(cell, list | tuple):
        return sum(map(_size, cell))
    if isinstance(cell, dict):
        return sum(_size(key) + _size(item) for key, item in cell.items())
    return 8

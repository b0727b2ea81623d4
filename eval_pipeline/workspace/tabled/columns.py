"""Collects rows and writes them to the record as columns, one group at a time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeVar

GROUP = 1000
"""Rows per row group: limits memory, and is large enough for Parquet to be fast."""

Row = TypeVar("Row")
Values = Mapping[str, Sequence[Any]]


def by_name(rows: Sequence[Mapping[str, Any]]) -> Values:
    """Converts rows to columns; all rows must have the same names."""
    return {name: list(map(itemgetter(name), rows)) for name in rows[0]}


class TakesColumns(Protocol):
    """What rows are written to: a table of the record, or a part of it."""

    def write(self, columns: Values) -> None:
        """Adds rows."""


class CollectedColumns(Generic[Row]):
    """Collects rows of one table, in any form that `as_columns` can convert to columns."""

    def __init__(self, writer: TakesColumns, as_columns: Callable[[Sequence[Row]], Values], group: int = GROUP) -> None:
        self._writer = writer
        self._as_columns = as_columns
        self._group = group
        self._rows: list[Row] = []

    def add(self, row: Row) -> None:
        """Adds a row; writes when a group is full."""
        self._rows.append(row)
        if len(self._rows) == self._group:
            self.flush()

    def extend(self, rows: Iterable[Row]) -> None:
        """Adds several rows."""
        for row in rows:
            self.add(row)

    def flush(self) -> None:
        """Writes the remaining rows."""
        if self._rows:
            self._writer.write(self._as_columns(self._rows))
            self._rows = []

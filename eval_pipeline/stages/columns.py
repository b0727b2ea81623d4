"""Rows on their way into the record: collected, written as columns a group at a time."""

from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.store.record import TableWriter

GROUP = 1000
"""Rows of a row group: small enough to bound memory, large enough for Parquet to be fast."""


class Columns:
    """Collects rows of one table; all rows must have the same keys."""

    def __init__(self, writer: TableWriter, group: int = GROUP) -> None:
        self._writer = writer
        self._group = group
        self._rows: list[Mapping[str, Any]] = []

    def add(self, row: Mapping[str, Any]) -> None:
        """Takes a row; writes when a group is full."""
        self._rows.append(row)
        if len(self._rows) == self._group:
            self.flush()

    def flush(self) -> None:
        """Writes what is left."""
        if self._rows:
            self._writer.write({name: [row[name] for row in self._rows] for name in self._rows[0]})
            self._rows = []


class ColumnBlocks:
    """Collects rows of one table that come as short columns, several rows at a time."""

    def __init__(self, writer: TableWriter, group: int = GROUP) -> None:
        self._writer = writer
        self._group = group
        self._columns: dict[str, list[Any]] = {}

    def extend(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Takes several rows, given as columns of the same length; writes when a group is full."""
        if not self._columns:
            self._columns = {name: [] for name in columns}
        for name, values in columns.items():
            self._columns[name].extend(values)
        if len(next(iter(self._columns.values()))) >= self._group:
            self.flush()

    def flush(self) -> None:
        """Writes what is left."""
        if self._columns:
            self._writer.write(self._columns)
            self._columns = {}

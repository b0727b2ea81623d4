"""Rows on their way into the record: collected as columns, written a group at a time."""

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
        self._columns: dict[str, list[Any]] = {}
        self._rows = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Takes a row; writes when a group is full."""
        if self._rows == 0:
            self._columns = {name: [] for name in row}
        for name, values in self._columns.items():
            values.append(row[name])
        self._rows += 1
        if self._rows == self._group:
            self.flush()

    def extend(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Takes several rows, given as columns of the same length; writes when a group is full."""
        if self._rows == 0:
            self._columns = {name: [] for name in columns}
        for name, values in self._columns.items():
            values.extend(columns[name])
        self._rows += len(next(iter(columns.values())))
        if self._rows >= self._group:
            self.flush()

    def flush(self) -> None:
        """Writes what is left."""
        if self._rows:
            self._writer.write(self._columns)
            self._rows = 0

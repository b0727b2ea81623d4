"""Rows on their way into the record: collected, written as columns a group at a time."""

from collections.abc import Iterable, Mapping
from operator import itemgetter
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

    def extend(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Takes several rows."""
        for row in rows:
            self.add(row)

    def flush(self) -> None:
        """Writes what is left."""
        if self._rows:
            self._writer.write({name: list(map(itemgetter(name), self._rows)) for name in self._rows[0]})
            self._rows = []

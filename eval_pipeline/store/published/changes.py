"""What publishing changes in the store: rows of a table and key, and the files of the record they come from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from pathlib import Path

from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.parquet.reading import layout
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import published_tables

ROW_GROUP = 2048
"""Number of rows that DuckDB collects before it compresses them.

Its default, 122,880, would keep 0.6 GB of prompts in memory.
"""
_PART_BYTES = 8 << 20
"""Rows so long that a row group of them has more than twice as many bytes are written in parts of about this size.

DuckDB holds the rows of a transaction in memory until there is a row group of them, however long they are. A part takes
40 CPU ms, so that shorter ones, as most prompts, are not worth it.
"""
_FILES_A_STATEMENT = 200
_ROWS_A_STATEMENT = 20_000
"""Bounds the memory of one look-up of shared rows in many files; one for each file would scan the store as often."""
Part = tuple[int, int]
"""Numbers of the first and the last row of a part of a file."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the record, as it is loaded into one published table.

    Attributes:
        relative: its path below the record, with `/`.
        place: file to read: the file itself, or a copy in the current schema.
        rows: number of rows.
        run_id: id of the run that made them; empty if the file does not say.
        size: bytes of the rows before they are compressed.
    """

    table: Table
    source: str
    key: RecordKey
    relative: str
    place: Path
    content_hash: str
    rows: int
    run_id: str = ""
    size: int = 0

    def facts(self) -> tuple[str, str, str | None, str | None, date | None, str, str]:
        """Returns the file's row in `meta.files`."""
        key = self.key
        return (
            *(self.table.name, self.source, key.suite, key.model_version, key.eval_date),
            *(self.relative, self.content_hash),
        )


@dataclass(frozen=True, slots=True)
class Change:
    """A table and key whose rows are replaced.

    Attributes:
        files: files with the new rows; empty if the rows are to be removed.
        was: paths of the files that the old rows came from; empty if there are no old rows.
    """

    table: Table
    key: RecordKey
    files: tuple[SourceFile, ...]
    was: tuple[str, ...]


def ordered(changes: Sequence[Change], track_tables: Sequence[Table]) -> list[Change]:
    """Sorts the changes into storage order: tables as declared, then by key."""
    places = {table.name: place for place, table in enumerate(published_tables(track_tables))}
    return sorted(changes, key=lambda change: (places[change.table.name], change.key.order()))


def together(files: Sequence[SourceFile]) -> Iterator[tuple[Sequence[SourceFile], Part | None]]:
    """Yields the files of one statement after the other, in their order; of a file with long rows one part each."""
    for long, same in groupby(files, _has_long_rows):
        if long:
            yield from (((file,), part) for file in same for part in _parts(file))
        else:
            yield from ((some, None) for some in _few(list(same)))


def _has_long_rows(file: SourceFile) -> bool:
    has_long = any(column.long for column in file.table.columns)
    return has_long and file.size > _PART_BYTES and file.size * ROW_GROUP > 2 * _PART_BYTES * file.rows


def _parts(file: SourceFile) -> Iterator[Part]:
    """Yields the parts of a file with long rows, which begin and end with its own row groups."""
    first = last = taken = 0
    for rows, size in layout(file.place):
        last, taken = last + rows, taken + size
        if taken >= _PART_BYTES:
            yield first, last - 1
            first, taken = last, 0
    if first < last:
        yield first, last - 1


def _few(files: Sequence[SourceFile]) -> Iterator[Sequence[SourceFile]]:
    """Splits files, in their order, into parts of at most that many files and rows; a larger file is alone."""
    some: list[SourceFile] = []
    for file in files:
        if some and (len(some) == _FILES_A_STATEMENT or sum(f.rows for f in some) + file.rows > _ROWS_A_STATEMENT):
            yield some
            some = []
        some.append(file)
    if some:
        yield some

"""Reads CSV files of users so that no cell is lost without a word: what the header has no place for is an error."""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.reading.foreign import MOST_BYTES

_END = "\0end of the file\0"
"""A line added after the last: if it becomes part of a row, a quote before it was never closed."""


class CsvRow(NamedTuple):
    """The cells of a row, with the lines on which it begins and ends: a cell in quotes may have several."""

    line: int
    last_line: int
    cells: list[str]


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A CSV file that is being read.

    Attributes:
        file: its name in problem reports.
        columns: the names in its header; empty if the file is.
    """

    file: str
    columns: tuple[str, ...]
    _rows: Iterator[CsvRow]

    def named(self) -> Iterator[tuple[CsvRow, dict[str, str | None]]]:
        """Yields each row that is not blank with its cells by column; cells that a row is short of are None.

        Raises:
            InputError: a row has more cells than the header, or is not CSV.
        """
        width = len(self.columns)
        for row, wrong in self.rows():
            if wrong:
                raise InputError([Problem(self.file, row.line, "", wrong)])
            if row.cells:
                cells = row.cells + [None] * (width - len(row.cells))
                yield row, dict(zip(self.columns, cells, strict=True))

    def rows(self) -> Iterator[tuple[CsvRow, str]]:
        """Yields each row, and what is wrong with it if it has more cells than the header. Raises as `named` does."""
        for row in self._rows:
            # Even of an empty one: a comma without quotes may have moved all the others.
            yield row, self._wrong(row) if len(row.cells) > len(self.columns) else ""

    def whole(self) -> Iterator[list[str]]:
        """Yields the cells of each row. Raises InputError for a row with more or fewer cells than the header."""
        for row in self._rows:
            if len(row.cells) != len(self.columns):
                raise InputError([Problem(self.file, row.line, "", self._wrong(row))])
            yield row.cells

    def _wrong(self, row: CsvRow) -> str:
        has = f"has {len(row.cells)} cell{'' if len(row.cells) == 1 else 's'}, the header has {len(self.columns)}"
        hint = (
            "; a cell with a separator or a line end in it needs quotes" if len(row.cells) > len(self.columns) else ""
        )
        return has + hint


def open_csv(lines: Iterable[str], file: str, separator: str = ",", skipped: int = 0) -> CsvFile:
    """Returns the rows of a CSV file, and reads its header.

    Args:
        lines: the file's lines with their ends, for example a file that was opened with `newline=""`.
        file: its name in problem reports.
        separator: what parts the cells.
        skipped: number of the file's lines before these.

    Raises:
        InputError: the header names a column twice, so that one of them would be lost, or is not CSV.
    """
    rows = _rows(lines, file, separator, skipped)
    header = next((row for row in rows if row.cells), None)
    if header is None:
        return CsvFile(file, (), rows)
    # Columns without a name, as after commas at the end of each line, are never asked for.
    twice = [name for name, count in Counter(header.cells).items() if name and count > 1]
    if twice:
        message = (
            f"the header names {' and '.join(map(repr, twice))} more than once; each column needs a name of its own"
        )
        raise InputError([Problem(file, header.line, "", message)])
    return CsvFile(file, tuple(header.cells), rows)


def open_table(lines: Iterable[str], file: str) -> CsvFile:
    """Returns the rows of a CSV file for a table of a database; see `open_csv`. A file without a header is an error."""
    found = open_csv(lines, file)
    if not found.columns:
        raise InputError([Problem(file, 1, "", "has no header; expected the names of the table's columns")])
    if len(found.columns) == 1 and {";", "\t"} & set(found.columns[0]):
        told = f"has only the column {found.columns[0]!r}; expected commas between the names"
        raise InputError([Problem(file, 1, "", told)])
    return found


def _rows(lines: Iterable[str], file: str, separator: str, skipped: int) -> Iterator[CsvRow]:
    csv.field_size_limit(MOST_BYTES)  # a cell may be as long as a file; the module's own limit is 131,072 characters
    reader = csv.reader(chain(lines, [_END]), delimiter=separator)
    line = skipped + 1
    try:
        for cells in reader:
            if cells == [_END]:
                return
            if cells and cells[-1].endswith(_END):
                raise InputError([Problem(file, line, "", "opens a quote that nothing closes")])
            yield CsvRow(line, skipped + reader.line_num, cells)
            line = skipped + reader.line_num + 1
    except csv.Error as error:
        raise InputError([Problem(file, line, "", f"is not CSV: {error}")]) from error

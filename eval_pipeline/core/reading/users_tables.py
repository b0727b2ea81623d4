"""Opens the tables that users have (CSV, Excel, Parquet) and says how each was read; no cell is lost without a word."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.csv_files import open_csv
from eval_pipeline.core.reading.foreign import UnreadableFileError, read_bytes, refuse_others, why_unread

SEPARATORS = {",": "','", ";": "';'", "\t": "tabs", "|": "'|'"}
"""What parts the cells of a CSV file → its name in messages, the most usual first."""
_SAMPLE_ROWS = 200
_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
"""The first line of a CSV file that Excel wrote, which names the separator."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands for a cell or a row that cannot be read, so that only who needs it complains.

    Attributes:
        why: a sentence without its subject.
    """

    why: str


@dataclass(frozen=True, slots=True)
class UsersTable:
    """A table that is being read.

    Attributes:
        columns: the names in its header, without spaces around them; columns without a name are left out.
        told: how it was read, e.g. `CSV in UTF-8 with ';' between cells`.
        rows: for each row with a cell its line (of an Excel sheet its row, else its number among the rows, from 1) and
            its cells by column: JSON values, or `Unreadable`; empty ones are left out.
    """

    columns: tuple[str, ...]
    told: str
    rows: Iterator[tuple[int, Mapping[str, Json] | Unreadable]]


def open_users_table(path: Path, name: str, wanted: Collection[str] = ()) -> UsersTable:
    """Opens a table and reads its header.

    Args:
        path: the file; its ending is one of `TABLE_FORMATS`.
        name: its name in problems.
        wanted: columns it is expected to have, if known, which tell one separator or sheet from another.

    Raises:
        InputError: it cannot be read; also while rows are read.
    """
    try:
        return TABLE_FORMATS[path.suffix.lower()](path, name, wanted)
    except OSError as error:
        raise InputError([Problem(name, None, "", f"cannot be read: {why_unread(error)}")]) from error


def checked_header(names: Sequence[Any], file: str) -> list[str]:
    """Returns the names of columns without spaces around them; empty for a column without a name.

    Raises:
        InputError: a name is there twice, so that one of the columns would be lost.
    """
    header = ["" if name is None else str(name).strip() for name in names]
    twice = [name for name, count in Counter(header).items() if name and count > 1]
    if twice:
        told = f"the header names {' and '.join(map(repr, twice))} more than once; each column needs a name of its own"
        raise InputError([Problem(file, None, "", told)])
    return header


def cells_by_column(header: Sequence[str], cells: Sequence[Json]) -> dict[str, Json]:
    """Returns the cells that are not empty by the name of their column; those of columns without one are left out."""
    pairs = zip(header, cells, strict=False)
    return {name: cell for name, cell in pairs if name and cell is not None and not _is_blank(cell)}


def cell_text(cell: Json) -> Json:
    """Returns the text of a cell, a whole number without decimals; lists and objects of Parquet stay what they are."""
    if isinstance(cell, str | list | dict):
        return cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _is_blank(cell: Json) -> bool:
    return isinstance(cell, str) and not cell.strip()


def _open_csv(path: Path, name: str, wanted: Collection[str]) -> UsersTable:
    text, encoding = _decoded(read_bytes(path), name)
    first = _SEPARATOR_LINE.match(text)
    separator = first[1] if first else likely_separator(text, wanted)
    lines = StringIO(text, newline="")
    if first:
        lines.readline()
    file = open_csv(lines, name, separator, skipped=1 if first else 0)
    header = checked_header(file.columns, name)

    def rows() -> Iterator[tuple[int, Mapping[str, Json] | Unreadable]]:
        for row, wrong in file.rows():
            if cells := Unreadable(wrong) if wrong else cells_by_column(header, row.cells):
                yield row.line, cells

    between = SEPARATORS.get(separator, f"'{separator}'")
    return UsersTable(
        named_columns(header), f"CSV in {encoding} with {between} between cells{nameless(header)}", rows()
    )


def _decoded(content: bytes, name: str) -> tuple[str, str]:
    """Returns the text of a CSV file and its encoding: UTF-8, UTF-16 with its mark, or else that of Windows."""
    if content.startswith(_UTF16):
        try:
            return content.decode("utf-16"), "UTF-16"
        except UnicodeDecodeError:
            raise InputError([Problem(name, None, "", "begins like UTF-16 text, but is none")]) from None
    refuse_others(content)
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise InputError([Problem(name, line, "", "has a byte of value zero, as no text has; save it as UTF-8")])
    for encoding, known_as in (("utf-8-sig", "UTF-8"), ("cp1252", "Windows-1252 (it is not UTF-8)")):
        try:
            return content.decode(encoding), known_as
        except UnicodeDecodeError as error:
            last = error
    line = content.count(b"\n", 0, last.start) + 1
    told = f"has the byte 0x{content[last.start]:02X}, which neither UTF-8 nor Windows-1252 has; save it as UTF-8"
    raise InputError([Problem(name, line, "", told)])


def likely_separator(text: str, wanted: Collection[str] = ()) -> str:
    """Returns what parts the cells: what gives the wanted columns, or else the most rows as wide as the header."""

    def fits(separator: str) -> tuple[int, float, int]:
        sample = csv.reader(StringIO(text, newline=""), delimiter=separator)
        try:
            rows = [row for row in islice(sample, _SAMPLE_ROWS) if row]
        except csv.Error:
            return (0, 0.0, 0)
        if not rows or len(rows[0]) < 2:
            return (0, 0.0, 0)
        there = len({cell.strip() for cell in rows[0]}.intersection(wanted))
        return (there, sum(len(row) == len(rows[0]) for row in rows) / len(rows), len(rows[0]))

    return max(SEPARATORS, key=fits)


def named_columns(header: Sequence[str]) -> tuple[str, ...]:
    """Returns the columns of a header that have a name."""
    return tuple(name for name in header if name)


def nameless(header: Sequence[str]) -> str:
    """Returns what is told of columns without a name, such as the index that pandas writes."""
    count = len(header) - len(named_columns(header))
    return f"; not read: {count} column{'s' * (count > 1)} without a name" if count else ""


def _open_excel(path: Path, name: str, wanted: Collection[str]) -> UsersTable:
    from eval_pipeline.core.reading.excel_sheets import open_sheet

    return open_sheet(path, name, wanted)


def _open_parquet(path: Path, name: str, wanted: Collection[str]) -> UsersTable:
    from eval_pipeline.core.reading.parquet_rows import open_rows

    return open_rows(path, name)


def _refused(path: Path, name: str, wanted: Collection[str]) -> UsersTable:
    raise UnreadableFileError("spreadsheets of this kind are not read; save it as .xlsx or .csv")


TABLE_FORMATS: Mapping[str, Callable[[Path, str, Collection[str]], UsersTable]] = {
    ".csv": _open_csv,
    ".tsv": _open_csv,
    ".xlsx": _open_excel,
    ".xlsm": _open_excel,
    ".parquet": _open_parquet,
    ".pq": _open_parquet,
    ".xls": _refused,
    ".ods": _refused,
}
"""Endings of files that are tables, and what opens each."""
BINARY_FORMATS = (".xlsx", ".xlsm", ".parquet", ".pq")
"""Those whose parsers a malformed file may crash."""

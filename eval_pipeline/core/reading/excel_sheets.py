"""Reads a sheet of an Excel workbook as rows of values; openpyxl is imported when one is opened."""

import warnings
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from itertools import islice
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.foreign import MOST_BYTES, read_bytes
from eval_pipeline.core.reading.users_tables import (
    Unreadable,
    UsersTable,
    cells_by_column,
    checked_header,
    named_columns,
    nameless,
)

_PROTECTED = b"\xd0\xcf\x11\xe0"
"""How old workbooks begin, and new ones that a password protects."""
_HEADER_WITHIN = 50
"""The header is the first row with a value, among so many."""


def open_sheet(path: Path, name: str, wanted: Collection[str]) -> UsersTable:
    """Opens the sheet of a workbook that has the wanted columns, or else the only one with rows.

    Raises:
        InputError: the file is no workbook, or several sheets could be meant.
        OSError: the file cannot be read.
    """
    if read_bytes(path)[:4] == _PROTECTED:
        raise _wrong(name, "is an old Excel file, or protected by a password; save it as .xlsx without one")
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(part.file_size for part in archive.infolist())
    except zipfile.BadZipFile:
        raise _wrong(name, "is no Excel workbook; expected .xlsx as spreadsheet programs write it") from None
    if size > MOST_BYTES:
        raise _wrong(name, f"unpacks to {size:,} bytes; expected at most {MOST_BYTES:,}")
    book = _book(path, name, values=True)
    headers = {title: found for title in book.sheetnames if (found := _header(book[title])) is not None}
    title = _chosen(headers, wanted, name)
    number, names = headers[title]
    header = checked_header(names, name)
    others = [f"'{other}'" for other in headers if other != title]
    told = f"sheet '{title}' of an Excel workbook{nameless(header)}"
    told += f"; not read: sheet{'s' * (len(others) > 1)} {', '.join(others)}" if others else ""
    return UsersTable(named_columns(header), told, _rows(path, name, book[title], number, header))


def _book(path: Path, name: str, *, values: bool) -> Any:
    from openpyxl import load_workbook

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl names features that it leaves out, none of them a cell
            return load_workbook(path, read_only=True, data_only=values)
    except Exception as error:  # openpyxl raises anything for parts that are not there or not as they should be
        raise _wrong(name, f"cannot be read as an Excel workbook: {error}") from error


def _header(sheet: Any) -> tuple[int, Sequence[Any]] | None:
    """Returns the number of the first row with a value, and its values; None if the sheet has none (or is a chart)."""
    if not hasattr(sheet, "iter_rows"):
        return None
    sheet.reset_dimensions()  # some programs write wrong ones, by which cells would be left out
    for number, row in enumerate(islice(sheet.iter_rows(values_only=True), _HEADER_WITHIN), start=1):
        if any(value is not None and str(value).strip() for value in row):
            return number, row
    return None


def _chosen(headers: Mapping[str, tuple[int, Sequence[Any]]], wanted: Collection[str], name: str) -> str:
    if not headers:
        raise _wrong(name, "has no sheet with rows")
    names = {title: {str(value).strip() for value in found} for title, (_, found) in headers.items()}
    counts = {title: len(columns.intersection(wanted)) for title, columns in names.items()}
    best = [title for title, count in counts.items() if count == max(counts.values())]
    if len(best) > 1:
        told = " and ".join(f"'{title}'" for title in best)
        raise _wrong(name, f"sheets {told} may both be meant; keep one of them, or give each case file its workbook")
    return best[0]


def _rows(
    path: Path, name: str, sheet: Any, header_row: int, header: Sequence[str]
) -> Iterator[tuple[int, Mapping[str, Json] | Unreadable]]:
    formulas: Iterator[Any] | None = None
    for number, row in enumerate(sheet.iter_rows(min_row=header_row + 1), start=header_row + 1):
        if formulas is None and any(cell.value is None for cell in row[: len(header)]):
            # Only a second look tells an empty cell from a formula that no program has computed.
            again = _book(path, name, values=False)[sheet.title]
            again.reset_dimensions()
            formulas = again.iter_rows(min_row=number)
        written = next(formulas, ()) if formulas is not None else ()
        if any(cell.value is not None for cell in row[len(header) :]):
            yield number, Unreadable("has a cell beyond the last column of the header; name its column, or empty it")
            continue
        values = [_value(cell, written[place : place + 1]) for place, cell in enumerate(row)]
        if cells := cells_by_column(header, values):
            yield number, cells


def _value(cell: Any, written: Sequence[Any]) -> Json | Unreadable:
    """Returns the value of a cell, given the same cell with its formula."""
    if cell.data_type == "e":
        return Unreadable(f"holds the error {cell.value}")
    if cell.value is None and written and written[0].data_type == "f":
        return Unreadable("holds a formula without its value; open the file in a spreadsheet program and save it")
    value = cell.value
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _wrong(name: str, told: str) -> InputError:
    return InputError([Problem(name, None, "", told)])

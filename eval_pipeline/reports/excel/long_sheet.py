"""A sheet that is one long table: header, filter, widths and formats; written a row at a time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from eval_pipeline.reports.excel.colours import colour_rates, colour_verdicts
from eval_pipeline.reports.excel.looks import GENERAL, HEADER, HEADER_RIGHT, CellMaker, Look, Value, fit_to_width

if TYPE_CHECKING:
    from openpyxl import Workbook

MOST_ROWS = 1_048_576
"""Rows that a sheet holds, the header among them."""
_HEADER_HEIGHT = 32


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a long sheet.

    Attributes:
        name: header, and key of the rows.
        width: in characters.
        format: Excel's number format.
        wrap: long text goes on in further lines.
        verdict: holds true and false, shown green and red; "bad" where true is the bad one.
        rate: holds 0..1, shown in a scale of colours.
    """

    name: str
    width: float = 12
    format: str = GENERAL
    wrap: bool = False
    verdict: str = ""
    rate: bool = False
    numeric: bool = False


def write_long_sheet(
    workbook: "Workbook",
    title: str,
    fields: Sequence[Field],
    rows: Iterable[Mapping[str, Any]],
    frozen: int = 0,
    most_rows: int = MOST_ROWS,
) -> None:
    """Writes the rows; where a sheet cannot hold them, they go on in `<title> 2` and so on.

    Args:
        frozen: columns that stay in view, beside the header.
    """
    waiting = iter(rows)
    number = 1
    while True:
        part = islice(waiting, most_rows - 1)
        _write_part(workbook, title if number == 1 else f"{title} {number}", fields, part, frozen)
        following = next(waiting, None)
        if following is None:
            return
        waiting = chain([following], waiting)
        number += 1


def _write_part(
    workbook: "Workbook", title: str, fields: Sequence[Field], rows: Iterable[Mapping[str, Any]], frozen: int
) -> None:
    from openpyxl.utils import get_column_letter

    sheet = workbook.create_sheet(title)
    letters = [get_column_letter(place) for place in range(1, len(fields) + 1)]
    sheet.freeze_panes = f"{get_column_letter(frozen + 1)}2"
    for letter, field in zip(letters, fields, strict=True):
        sheet.column_dimensions[letter].width = field.width
    sheet.row_dimensions[1].height = _HEADER_HEIGHT
    fit_to_width(sheet)
    sheet.print_title_rows = "1:1"
    maker = CellMaker(sheet)
    sheet.append(maker.row((field.name, HEADER_RIGHT if _is_number(field) else HEADER) for field in fields))
    names = [field.name for field in fields]
    looks = [Look(field.format, wrap=field.wrap, align="center" if field.verdict else "") for field in fields]
    last = 1
    for row in rows:
        values: list[Value] = [row[name] for name in names]
        sheet.append(maker.row(zip(values, looks, strict=True)))
        last += 1
    sheet.auto_filter.ref = f"A1:{letters[-1]}{last}"
    for letter, field in zip(letters, fields, strict=True):
        cells = f"{letter}2:{letter}{max(last, 2)}"
        if field.verdict:
            colour_verdicts(sheet, cells, good=field.verdict != "bad")
        elif field.rate:
            colour_rates(sheet, cells)


def _is_number(field: Field) -> bool:
    return field.numeric or field.format != GENERAL


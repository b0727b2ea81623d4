"""Writes a sheet that is one long table with a header, filters, widths and formats, row by row."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal

from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.looks import (
    GENERAL,
    HEADER_RIGHT,
    HEADER_TEXT,
    LINK,
    TEXT,
    VERDICT,
    CellLook,
    Styled,
    colour_rates,
    colour_verdicts,
    height,
)
from eval_pipeline.reports.excel.printing import (
    ROW_HEIGHT,
    page_setup,
    printed_columns,
    rows_on_paper,
    scale_for,
    write_foot,
)

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

MOST_ROWS = 1_048_576
"""The most rows that Excel allows in a sheet, including the header."""
_MOST_LINKS = 65_000
_HEADER_HEIGHT = 22
_MOST_PRINTED = 500
"""Rows whose heights are kept to see how many are printed."""

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a long sheet.

    Attributes:
        name: the header, and the key in the rows unless `column` is.
        width: in characters; a column is never narrower than its header.
        format: Excel's number format; `General` for text.
        wrap: whether long text is wrapped.
        verdict: for columns of true and false, whether true is `good` (green), `bad` (red) or `neutral` (no colour).
        rate: whether the column holds values from 0 to 1, shown with a colour scale.
        link: returns the cell of the workbook that a row's value links to.
    """

    name: str
    width: float = 12
    format: str = GENERAL
    wrap: bool = False
    verdict: Literal["", "good", "bad", "neutral"] = ""
    rate: bool = False
    link: Callable[[Record], str] | None = None
    column: str = ""

    @property
    def key(self) -> str:
        """The name of its values in the rows."""
        return self.column or self.name

    def look(self) -> CellLook:
        """Returns the look of the column's values."""
        if self.link is not None:
            return LINK
        if self.verdict:
            return CellLook(VERDICT, align="center")
        if self.format != GENERAL:
            return CellLook(self.format)
        return CellLook(wrap=True, align="left", indent=1) if self.wrap else TEXT


def write_long_sheet(
    book: Book,
    title: str,
    fields: Sequence[Field],
    rows: Iterable[Record],
    frozen: int,
    most_rows: int = MOST_ROWS,
    most_lines: int = 8,
    pages: int = 1,
) -> None:
    """Writes the rows; if one sheet cannot hold them all, they continue in `<title> 2` and so on.

    Printed are the first columns and rows that can be read on `pages` pages; the head of these says of how many rows.

    Args:
        book: the workbook.
        title: name of the sheet.
        fields: the columns.
        rows: values by the keys of fields; a figure brings its own look.
        frozen: number of columns that stay visible when scrolling, in addition to the header.
        most_rows: maximum number of rows per sheet, including the header.
        most_lines: maximum number of lines of text that a row shows.
        pages: maximum number of printed pages.
    """
    waiting = iter(rows)
    number = 1
    while True:
        part = islice(waiting, most_rows - 1)
        _write_part(book, title if number == 1 else f"{title} {number}", fields, part, frozen, most_lines, pages)
        following = next(waiting, None)
        if following is None:
            return
        waiting = chain([following], waiting)
        number += 1


def _write_part(
    book: Book, title: str, fields: Sequence[Field], rows: Iterable[Record], frozen: int, most_lines: int, pages: int
) -> None:
    from openpyxl.utils import get_column_letter

    sheet = book.sheet(title)
    letters = [get_column_letter(place) for place in range(1, len(fields) + 1)]
    _lay_out(sheet, letters, fields, frozen)
    written = book.rows_of(sheet)
    written.append(
        [(field.name, HEADER_TEXT if field.format == GENERAL else HEADER_RIGHT) for field in fields], _HEADER_HEIGHT
    )
    columns = [(field.key, field.look()) for field in fields]
    wrapped = [(field.key, field.width) for field in fields if field.wrap]
    links = [(place, field.link) for place, field in enumerate(fields) if field.link is not None]
    heights = [float(_HEADER_HEIGHT)]
    for row in rows:
        tall = height([(row[name], width) for name, width in wrapped if row[name]], most_lines)
        written.append((_styled(row[name], look) for name, look in columns), tall)
        if len(heights) < _MOST_PRINTED:
            heights.append(tall or ROW_HEIGHT)
        if written.last_row <= _MOST_LINKS:
            for place, link in links:
                written.link(place, link(row))
    last = written.last_row
    _print(sheet, letters, heights, last, pages)
    sheet.auto_filter.ref = f"A1:{letters[-1]}{last}"
    for letter, field in zip(letters, fields, strict=True):
        cells = f"{letter}2:{letter}{max(last, 2)}"
        if field.verdict in ("good", "bad"):
            colour_verdicts(sheet, cells, good=field.verdict == "good")
        elif field.rate:
            colour_rates(sheet, cells)


def _styled(value: Any, look: CellLook) -> Styled:
    return value if isinstance(value, tuple) else (value, look)


def _lay_out(sheet: "Worksheet", letters: Sequence[str], fields: Sequence[Field], frozen: int) -> None:
    from openpyxl.utils import get_column_letter

    sheet.freeze_panes = f"{get_column_letter(frozen + 1)}2"
    for letter, field in zip(letters, fields, strict=True):
        sheet.column_dimensions[letter].width = max(field.width, len(field.name) * 0.95 + 4)
    page_setup(sheet)
    sheet.print_title_rows = "1:1"


def _print(sheet: "Worksheet", letters: Sequence[str], heights: Sequence[float], last: int, pages: int) -> None:
    """Chooses what is printed, and says on the page which part it is."""
    widths = [sheet.column_dimensions[letter].width for letter in letters]
    columns = printed_columns(widths)
    sheet.page_setup.scale = scale = scale_for(widths[:columns])
    rows = rows_on_paper(scale, heights, pages)
    sheet.print_area = f"A1:{letters[columns - 1]}{rows}"
    if rows < last:
        write_foot(sheet, f"&A: the first {rows - 1:,} of {last - 1:,} rows; the file has all")

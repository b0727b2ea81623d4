"""Writes a sheet that is read from top to bottom: titles, notes and small tables."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import Any

from eval_pipeline.core import shown
from eval_pipeline.reports.contents.figure_table import VERDICTS, FigureColumn, FigureTable, Kind, plain
from eval_pipeline.reports.excel.book import Book, Rows
from eval_pipeline.reports.excel.looks import (
    BY_UNIT,
    COUNT,
    HEADER,
    HEADER_RIGHT,
    HEADER_TEXT,
    NOTE,
    PLAIN,
    REMARK,
    SECTION,
    SUBTITLE,
    TITLE,
    WHOLE,
    WRAPPED,
    CellLook,
    Styled,
    figure_cell,
    height,
    number_format,
)
from eval_pipeline.reports.excel.printing import Fold, fit_to_width, foldable

TEXT_HEADERS = frozenset(
    {
        "note",
        "question",
        "example",
        "message, without its numbers",
        "verdict",
        "minus the first",
        "",
        "reason",
        "action",
        "who",
        "why",
        "published",
        "overridden",
        "expected",
        "agreed answer",
        "evidence",
    }
)
"""Headers of text columns (the first column of a table is always text)."""
_LINE, _MOST_LINES = 95, 3
"""Characters of a line, and lines of a fact that are seen."""
LOOKS: Mapping[Kind, CellLook] = {
    **{unit: COUNT if unit == "tokens" else CellLook(form) for unit, form in BY_UNIT.items()},
    "text": PLAIN,
    "note": NOTE,
    "long": WRAPPED,
    "words": PLAIN,
    "told": PLAIN,
    "place": PLAIN,
    "number": CellLook(WHOLE, align="left"),
}
"""Looks of the cells of tables that pages show too."""


class SheetWriter:
    """Writes a sheet from top to bottom.

    Attributes:
        sheet: openpyxl's sheet.
    """

    def __init__(self, book: Book, title: str, widths: Sequence[float]) -> None:
        """Adds the sheet to the book; `widths` are those of its columns, in characters."""
        from openpyxl.utils import get_column_letter

        self._book = book
        self.sheet = book.sheet(title)
        self._widths = widths
        self._fold: Fold = ""
        self._rows = book.rows_of(self.sheet)
        for place, width in enumerate(widths, start=1):
            self.sheet.column_dimensions[get_column_letter(place)].width = width
        self.sheet.sheet_view.showGridLines = False
        fit_to_width(self.sheet)

    @property
    def next_row(self) -> int:
        """Number of the row that is written next, counted from 1."""
        return self._rows.last_row + 1

    def row(self, *cells: Styled, tall: float | None = None) -> int:
        """Writes a row and returns its number."""
        if tall is None:
            pairs = zip(cells, self._widths, strict=False)
            tall = height([(value, width) for (value, look), width in pairs if look.wrap and isinstance(value, str)])
        self._rows.append(cells, tall, self._fold)
        return self._rows.last_row

    @contextmanager
    def folded(self, text: str, level: CellLook = SECTION) -> Iterator[None]:
        """Folds away the rows that are written meanwhile, below a heading that stays."""
        foldable(self.sheet)
        self.blank()
        self._rows.append([(text, level)], 19, "head")
        self._fold = "inside"
        yield
        self._fold = ""

    def blank(self, rows: int = 1) -> None:
        """Leaves rows empty."""
        if self._fold:
            for _ in range(rows):
                self.row()
        else:
            self._rows.last_row += rows

    def title(self, text: str, *subtitles: str) -> None:
        """Writes the sheet's heading."""
        self.row((text, TITLE), tall=24)
        for subtitle in subtitles:
            self.row((subtitle, SUBTITLE))

    def band(self, text: str, look: CellLook) -> None:
        """Writes a text across the whole width, on a coloured background."""
        self.row((text, look), *[(None, look)] * (len(self._widths) - 1), tall=20)

    def section(self, text: str) -> None:
        """Writes a section heading, with an empty row above it."""
        self.blank()
        self.row((text, SECTION), tall=19)

    def note(self, text: str) -> None:
        """Writes a remark."""
        self.row((text, REMARK))

    def query(self, what: str, sql: str) -> None:
        """Registers the query that returns the figures of a part of the sheet."""
        self._book.add_query(self.sheet.title, what, sql)

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[Styled]], header_height: float = 17) -> Rows:
        """Writes a table. The first column is text; the others are numbers unless their header is in `TEXT_HEADERS`.

        If the last column is text, the header is drawn across the whole width of the page.
        """
        cells = [(name, HEADER_TEXT if name in TEXT_HEADERS else HEADER_RIGHT) for name in headers]
        cells[0] = (headers[0], HEADER)
        if headers[-1] in TEXT_HEADERS:
            cells += [("", HEADER)] * (len(self._widths) - len(headers))
        header = self.row(*cells, tall=header_height)
        for row in rows:
            self.row(*row)
        return Rows(header, header + 1, self.next_row - 1)

    def figures(self, found: FigureTable, *, titled: bool = True, header_height: float = 17) -> Rows:
        """Writes a table that pages show too, below its caption, with its queries."""
        if titled:
            self.section(found.caption)
        columns = [column for column in found.columns if column.kind != "interval"]
        rows = [[_styled(row, column) for column in columns] for row in found.rows]
        for sql in found.sql:
            self.query(found.caption, sql)
        return self.table([column.header for column in columns], rows, header_height)

    def fact(self, name: str, value: str) -> None:
        """Writes a name and its value, which may take several lines; of a long one the rest is folded."""
        foldable(self.sheet)
        lines = wrap(value, _LINE, break_on_hyphens=False) or [""]
        for place, line in enumerate(lines):
            if place >= _MOST_LINES:
                self._fold = "inside"
            elif place == _MOST_LINES - 1 and len(lines) > _MOST_LINES:
                self._fold, line = "head", f"{line} …"
            self.row((name if place == 0 else None, SUBTITLE), (line, PLAIN))
        self._fold = ""


def _styled(row: Mapping[str, Any], column: FigureColumn) -> Styled:
    value, kind = row.get(column.name), column.kind
    if column.ends or column.signed:
        return figure_cell(value, kind, *(row[name] for name in column.ends), differs=column.signed)  # type: ignore[arg-type]
    if kind == "verdict":
        return VERDICTS[value], CellLook(align="right")
    if kind != "plain":
        return value, LOOKS[kind]
    if isinstance(value, bool):
        return plain(value), PLAIN
    if isinstance(value, float):
        return value, CellLook(number_format(shown.number(value), negative=value < 0))
    return (value, PLAIN) if isinstance(value, int) or value is None else (str(value), WRAPPED)

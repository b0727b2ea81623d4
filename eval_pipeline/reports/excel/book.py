"""The workbook while it is written, and a way to save it so that equal contents give equal bytes."""

import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from eval_pipeline.reports.excel.looks import CellLook, Styled, of_value, styled_cell
from eval_pipeline.reports.excel.printing import Fold

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet


_FOLDS = {"": "", "head": ' collapsed="1"', "inside": ' hidden="1" outlineLevel="1"'}

if TYPE_CHECKING:
    from openpyxl.worksheet.hyperlink import Hyperlink
    from openpyxl.worksheet.worksheet import Worksheet


class SheetRows:
    """The rows of a sheet, collected in a file that `Book.save` inserts into the sheet.

    Attributes:
        file: the XML of the rows.
        links: links of cells to others.
        last_row: number of the last row written, counted from 1.
    """

    def __init__(self, sheet: "Worksheet") -> None:
        self.file: IO[bytes] = TemporaryFile()  # noqa: SIM115, closed by Book.save
        self.last_row = 0
        self.links: list[Hyperlink] = []
        self._sheet: Any = sheet
        self._styles: dict[tuple[CellLook, bool], int] = {}
        self._letters: list[str] = []

    def append(self, values: Iterable[Styled], tall: float | None = None, fold: Fold = "") -> None:
        """Writes a row; `tall` is its height in points."""
        self.last_row += 1
        row = self.last_row
        height = "" if tall is None else f' ht="{tall:g}" customHeight="1"'
        pieces = [f'<row r="{row}"{height}{_FOLDS[fold]}>']
        for place, (value, look) in enumerate(values):
            if value is not None or look.fill:
                pieces.append(self._cell(f"{self._letter(place)}{row}", value, look))
        pieces.append("</row>")
        self.file.write("".join(pieces).encode())

    def link(self, place: int, target: str) -> None:
        """Makes a cell of the last row (counted from 0) link to another cell of the workbook, such as `'Turns'!A2`."""
        from openpyxl.worksheet.hyperlink import Hyperlink

        self.links.append(Hyperlink(ref=f"{self._letter(place)}{self.last_row}", location=target))

    def _cell(self, reference: str, value: Any, look: CellLook) -> str:
        """Returns the XML of a cell; text stays text even if it looks like a formula."""
        if value is None or (value == "" and look.fill):
            return f'<c r="{reference}" s="{self._style(look, False)}"/>'
        if isinstance(value, str):
            text = cell_text(value)
            style = self._style(look, looks_like_formula(text))
            kept = ' xml:space="preserve"' if text != text.strip() or "\n" in text else ""
            return f'<c r="{reference}" s="{style}" t="inlineStr"><is><t{kept}>{escape(text)}</t></is></c>'
        if isinstance(value, bool):
            return f'<c r="{reference}" s="{self._style(look, False)}" t="b"><v>{value:d}</v></c>'
        return f'<c r="{reference}" s="{self._style(of_value(look, value), False)}"><v>{value!r}</v></c>'

    def _style(self, look: CellLook, quoted: bool) -> int:
        style = self._styles.get((look, quoted))
        if style is None:
            cell: Any = styled_cell(self._sheet, look, quoted)
            style = self._styles[look, quoted] = int(cell.style_id)
        return style

    def _letter(self, place: int) -> str:
        if place >= len(self._letters):
            from openpyxl.utils import get_column_letter

            self._letters += [get_column_letter(number + 1) for number in range(len(self._letters), place + 1)]
        return self._letters[place]


_END = b"</sheetData>"
OTHER_TITLES = {"Overview": "Evaluation", "Statistics": "All statistics"}
"""New titles for common sheets when a track's own sheet already uses their title."""


@dataclass(frozen=True, slots=True)
class FigureQuery:
    """A query on the published store that returns some of the workbook's figures.

    Attributes:
        what: the part of the sheet that shows these figures.
    """

    sheet: str
    what: str
    sql: str


@dataclass(frozen=True, slots=True)
class Rows:
    """The position of a table: the rows of its header and of its first and last values, counted from 1."""

    header: int
    first: int
    last: int


class Book:
    """A workbook whose sheets are written one after the other and cannot be read back.

    Attributes:
        queries: the queries that return the workbook's figures, in the order of the sheets.
        tables: sheet and rows of tables that charts on other sheets draw from, by a name for each.
    """

    def __init__(self) -> None:
        from openpyxl import Workbook

        self._workbook = Workbook(write_only=True)
        self._rows: dict[str, SheetRows] = {}
        self.queries: list[FigureQuery] = []
        self.tables: dict[str, tuple[Worksheet, Rows]] = {}

    def sheet(self, title: str) -> "Worksheet":
        """Adds a sheet; if the title is already used, the sheet gets the replacement title from `OTHER_TITLES`."""
        taken = title in self._workbook.sheetnames
        sheet: Worksheet = self._workbook.create_sheet(OTHER_TITLES[title] if taken else title)
        return sheet

    def add_query(self, sheet: str, what: str, sql: str) -> None:
        """Registers the query that returns some figures of a sheet."""
        self.queries.append(FigureQuery(sheet, what, sql))

    def own_sheets_last(self, count: int) -> None:
        """Moves the track's own sheets (the first `count`) to the end, unless some replace common sheets.

        In that case they are what a reader wants first, and stay together.
        """
        if any(other in self._workbook.sheetnames for other in OTHER_TITLES.values()):
            return
        for sheet in self._workbook.worksheets[:count]:
            self._workbook.move_sheet(sheet.title, len(self._workbook.sheetnames))

    @property
    def titles(self) -> list[str]:
        """The titles of the sheets, in order."""
        return list(self._workbook.sheetnames)

    def rows_of(self, sheet: "Worksheet") -> SheetRows:
        """Returns a writer for the rows of a sheet."""
        self._rows[sheet.title] = rows = SheetRows(sheet)
        return rows

    def save(self, path: Path, title: str, day: date, keywords: str) -> None:
        """Writes the file as openpyxl's own `save` does, but without the time of day.

        Args:
            path: path of the file.
            title: title in the workbook's properties.
            day: creation date in the workbook's properties.
            keywords: keywords in the workbook's properties.
        """
        from openpyxl.writer.excel import ExcelWriter

        properties = self._workbook.properties
        properties.creator, properties.keywords = "eval-pipeline", keywords
        properties.title = title
        properties.created = properties.modified = datetime.combine(day, time())
        rows = {
            f"xl/worksheets/sheet{place}.xml": self._rows[title].file
            for place, title in enumerate(self._workbook.sheetnames, start=1)
            if title in self._rows
        }
        for title, written in self._rows.items():
            sheet: Any = self._workbook[title]
            sheet._get_writer()  # which takes all links away
            sheet._hyperlinks += written.links
        with _Archive(path, rows) as archive:
            ExcelWriter(self._workbook, archive).write_data()
        for file in rows.values():
            file.close()


class _Archive(ZipFile):
    """A zip file whose entries have a fixed time stamp; it also inserts the rows of sheets while writing.

    Args:
        rows: for each entry's name, XML of rows to insert at the end of its `sheetData`.
    """

    def __init__(self, path: Path, rows: Mapping[str, IO[bytes]]) -> None:
        super().__init__(path, "w", ZIP_DEFLATED)
        self._rows = rows

    def writestr(
        self, zinfo_or_arcname: str | ZipInfo, data: Any, compress_type: int | None = None, compresslevel: Any = None
    ) -> None:
        """Adds an entry from memory."""
        name = zinfo_or_arcname if isinstance(zinfo_or_arcname, str) else zinfo_or_arcname.filename
        super().writestr(_entry(name), data, compress_type, compresslevel)

    def write(self, filename: Any, arcname: Any = None, *_: Any) -> None:
        """Adds an entry from a file."""
        name = str(arcname or filename)
        with Path(filename).open("rb") as source, self.open(_entry(name), "w") as target:
            rows = self._rows.get(name)
            if rows is None:
                shutil.copyfileobj(source, target)
                return
            head, end, tail = source.read().partition(_END)
            rows.seek(0)
            for part in (BytesIO(head), rows, BytesIO(end + tail)):
                shutil.copyfileobj(part, target)


def _entry(name: str) -> ZipInfo:
    entry = ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.compress_type = ZIP_DEFLATED
    return entry


MOST = 32_767
"""The most UTF-16 units that a cell can hold."""

_FORMULA = ("=", "+", "-", "@", "\t", "\n")
_NEWLINES = re.compile("\r\n?")
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ESCAPE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")


def cell_text(text: str) -> str:
    """Returns the text in a form that a cell can hold.

    Control characters are removed, and carriage returns become line feeds. Sequences such as `_x0041_`, which Excel
    would show as `A`, are escaped. Text that is too long is cut, with a note at its end.
    """
    text = _ILLEGAL.sub("", _NEWLINES.sub("\n", text))
    escaped = _ESCAPE.sub("_x005F_", text)
    if len(escaped) <= MOST // 2 or _units(escaped) <= MOST:
        return escaped
    note = f" … [cut: {_units(text):,} characters in all; .parquet and .csv hold the whole text]"
    room = MOST - len(note)
    if escaped != text:
        room //= 2  # escaping makes a text at most twice as long
    kept = text.encode("utf-16-le")[: 2 * room].decode("utf-16-le", "ignore")
    return _ESCAPE.sub("_x005F_", kept) + note


def looks_like_formula(text: str) -> bool:
    """Returns whether a spreadsheet could treat the text as a formula after the cell is edited or saved as CSV."""
    return text.startswith(_FORMULA)


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2

"""How cells look: number formats, fonts and fills, and cells made from them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from eval_pipeline.reports.excel.text import cell_text, looks_like_formula
from eval_pipeline.reports.profile import Unit

if TYPE_CHECKING:
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.worksheet._write_only import WriteOnlyWorksheet

Value = str | int | float | bool | date | None

GENERAL = "General"
PERCENT = "0.0%"
INTEGER = "#,##0"
DECIMAL = "#,##0.00"
SCORE = "0.000"
DOLLARS = "[=0]$0.00;[<1]$0.0000##;$#,##0.00"
MILLISECONDS = '#,##0" ms"'
DATE = "yyyy-mm-dd"

BY_UNIT: dict[Unit, str] = {
    "rate": PERCENT,
    "score": SCORE,
    "count": DECIMAL,
    "tokens": INTEGER,
    "usd": DOLLARS,
    "ms": MILLISECONDS,
}

INK, PAPER, FAINT, LINE = "1F2937", "FFFFFF", "6B7280", "D1D5DB"
BLUE, LIGHT, ALARM = "1F4E79", "EAF1F8", "B42318"
GOOD, FAIR, BAD = "A9D8B8", "FCE8A6", "F4B6AE"


@dataclass(frozen=True, slots=True)
class Look:
    """Appearance of a cell.

    Attributes:
        format: Excel's number format.
        fill: colour of the background, empty for none.
        rule: a thin line below.
    """

    format: str = GENERAL
    bold: bool = False
    italic: bool = False
    size: int = 10
    colour: str = INK
    fill: str = ""
    wrap: bool = False
    align: str = ""
    rule: bool = False


PLAIN = Look()
WRAPPED = Look(wrap=True)
TITLE = Look(bold=True, size=16, colour=BLUE)
SUBTITLE = Look(colour=FAINT)
SECTION = Look(bold=True, size=12, colour=BLUE)
HEADER = Look(bold=True, colour=PAPER, fill=BLUE, wrap=True, align="left")
HEADER_RIGHT = Look(bold=True, colour=PAPER, fill=BLUE, wrap=True, align="right")
WARNING = Look(bold=True, size=12, colour=PAPER, fill=ALARM)
NOTE = Look(italic=True, colour=FAINT)
LINK = Look(colour="1155CC")

Styled = tuple[Value, Look]


class CellMaker:
    """Makes the cells of a sheet that is only written.

    A cell object is used again for every value of its look: openpyxl writes each out before it asks for the next, as
    `row` hands them over one at a time.
    """

    def __init__(self, sheet: "WriteOnlyWorksheet") -> None:
        self._sheet = sheet
        self._made: dict[tuple[Look, bool], WriteOnlyCell] = {}

    def row(self, values: Iterable[Styled]) -> Iterator[Any]:
        """Cells for `sheet.append`, a generator so that each is written before the next one is made."""
        for value, look in values:
            yield None if value is None and not look.fill and not look.rule else self.cell(value, look)

    def cell(self, value: Value, look: Look) -> "WriteOnlyCell":
        """A cell that holds the value; text stays text whatever it starts with."""
        if not isinstance(value, str):
            cell = self._cell(look, False)
            cell.value = value
            return cell
        text = cell_text(value)
        cell = self._cell(look, looks_like_formula(text))
        cell.value = text
        cell.data_type = "s"
        return cell

    def _cell(self, look: Look, quoted: bool) -> "WriteOnlyCell":
        cell = self._made.get((look, quoted))
        if cell is None:
            cell = self._made[look, quoted] = _styled_cell(self._sheet, look, quoted)
        return cell


def _styled_cell(sheet: "WriteOnlyWorksheet", look: Look, quoted: bool) -> "WriteOnlyCell":
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Alignment, Border, Font, PatternFill, Side

    cell = WriteOnlyCell(sheet)
    cell.font = Font(name="Calibri", size=look.size, bold=look.bold, italic=look.italic, color=look.colour)
    cell.alignment = Alignment(horizontal=look.align or None, vertical="top", wrap_text=look.wrap or None)
    if look.fill:
        cell.fill = PatternFill("solid", fgColor=look.fill)
    if look.rule:
        cell.border = Border(bottom=Side("thin", color=LINE))
    cell.number_format = look.format
    if quoted:
        cell.quotePrefix = True
    return cell


def fit_to_width(sheet: "WriteOnlyWorksheet") -> None:
    """On paper: landscape, all columns on one page."""
    from openpyxl.worksheet.properties import PageSetupProperties

    sheet.page_setup.orientation = "landscape"
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)

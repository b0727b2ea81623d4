"""The look of cells (number formats, fonts and fills), and how cells are made from it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Any

from eval_pipeline.core import shown
from eval_pipeline.core.shown import Unit

if TYPE_CHECKING:
    from openpyxl.cell.cell import Cell
    from openpyxl.worksheet.worksheet import Worksheet

Value = str | int | float | bool | None

GENERAL = "General"
PERCENT = "0.0%"
WHOLE = "0"
INTEGER = "#,##0"
DECIMAL = "#,##0.00"
SCORE = "0.000"
DOLLARS = '$#,##0.00;"−"$#,##0.00'
"""Of amounts from one dollar on; smaller ones in such a cell get the decimals of `shown.dollars`."""
MILLISECONDS = '#,##0" ms"'
POINTS = '+0.0;"−"0.0;0.0'
"""For a difference between rates, in percentage points."""
P_VALUE = f'[<{shown.LEAST_P}]"< {shown.LEAST_P}";0.0000'
VERDICT = '"TRUE";"TRUE";"FALSE"'
"""Number format of booleans. Excel needs none, but LibreOffice 7.4 crashes on conditional formats without it."""

BY_UNIT: dict[Unit, str] = {
    "rate": PERCENT,
    "score": SCORE,
    "count": DECIMAL,
    "tokens": INTEGER,
    "usd": DOLLARS,
    "ms": MILLISECONDS,
    "points": POINTS,
    "p": P_VALUE,
}
"""Formats of whole columns. `figure_cell` goes by the figure, as its interval bounds the digits."""
_FIGURE = re.compile(r"([−+]?)(\$?)([\d,]+)((?:\.\d+)?)(.*)")

INK, PAPER, FAINT, LINE = "1F2937", "FFFFFF", "6B7280", "D1D5DB"
BLUE, ALARM = "1F4E79", "B42318"
GOOD, FAIR, BAD = "A9D8B8", "FCE8A6", "F4B6AE"
_POINTS = 13.5
_CHARACTERS = 1.1
"""How many characters of these fonts fit into one unit of column width, on average."""
_BOLD = 1.05
"""Average width of a bold character; it allows for fonts that replace Excel's own and are wider."""
_MOST_LINES = 8


@dataclass(frozen=True, slots=True)
class CellLook:
    """The look of a cell.

    Attributes:
        format: Excel's number format.
        fill: background colour; empty for none.
        indent: space before a text, so that it does not touch the number on its left.
    """

    format: str = GENERAL
    bold: bool = False
    italic: bool = False
    size: int = 10
    colour: str = INK
    fill: str = ""
    wrap: bool = False
    align: str = ""
    indent: int = 0
    underline: bool = False


PLAIN = CellLook()
TEXT = CellLook(align="left", indent=1)
WRAPPED = CellLook(wrap=True, align="left", indent=1)
COUNT = CellLook(INTEGER)
TITLE = CellLook(bold=True, size=16, colour=BLUE)
SUBTITLE = CellLook(colour=FAINT)
SECTION = CellLook(bold=True, size=12, colour=BLUE)
HEADER = CellLook(bold=True, colour=PAPER, fill=BLUE, wrap=True, align="left")
HEADER_TEXT = CellLook(bold=True, colour=PAPER, fill=BLUE, wrap=True, align="left", indent=1)
HEADER_RIGHT = CellLook(bold=True, colour=PAPER, fill=BLUE, wrap=True, align="right")
WARNING = CellLook(bold=True, size=12, colour=PAPER, fill=ALARM)
REMARK = CellLook(italic=True, colour=FAINT)
NOTE = CellLook(italic=True, colour=FAINT, align="left", indent=1)
LINK = CellLook(colour="1155CC", underline=True)

Styled = tuple[Value, CellLook]


def figure_cell(
    value: float | None,
    unit: Unit,
    low: float | None = None,
    high: float | None = None,
    *,
    bold: bool = False,
    differs: bool = False,
) -> Styled:
    """Returns a cell that shows a figure with the digits and the sign of `shown.figure`.

    A difference between rates is written in percentage points, as Excel's formats cannot multiply. One between figures
    of another unit has its sign if `differs`.
    """
    if value is None:
        return None, CellLook(BY_UNIT[unit], bold=bold)
    form = number_format((shown.signed if differs else shown.figure)(value, unit, low, high), negative=value < 0)
    return (100 * value if unit == "points" else value), CellLook(form, bold=bold)


def figure_cells(value: float | None, unit: Unit, low: float | None, high: float | None) -> list[Styled]:
    """Returns the cells of a figure and of the ends of its interval."""
    ends = (low, high)
    return [figure_cell(value, unit, *ends, bold=True), *(figure_cell(end, unit, *ends) for end in ends)]


def number_format(text: str, *, negative: bool) -> str:
    """Returns Excel's number format with which a number reads like its text, such as `−$12.50` or `1,200 ms`."""
    found = _FIGURE.fullmatch(text)
    if found is None or found[5].startswith("E"):
        return f'"{text}"'
    sign, currency, whole, decimals, unit = found.groups()
    digits = currency + ("#,##0" if "," in whole else "0") + re.sub(r"\d", "0", decimals)
    digits += unit if unit in ("", "%") else f'"{unit}"'
    if negative:
        return f"{digits};" + (f'"{sign}"{digits}' if sign else digits)
    return sign + digits


def of_value(look: CellLook, value: float) -> CellLook:
    """Returns the look of a number in a column, whose decimals depend on the number if it is an amount of dollars."""
    if look.format != DOLLARS or not 0 < abs(value) < 1:
        return look
    return replace(look, format=number_format(shown.dollars(value), negative=value < 0))


def height(texts: Iterable[tuple[str, float]], most_lines: int = _MOST_LINES) -> float | None:
    """Returns the height in points of a row whose texts are wrapped in columns of these widths; None for a single line.

    At most `most_lines` lines are shown, and never more than the 409 points that Excel allows. The height must be set
    because neither Excel nor LibreOffice adjusts the rows of a generated file.
    """
    lines = 1
    for text, column in texts:
        width = column * _CHARACTERS
        if len(text) > width or "\n" in text:
            lines = max(lines, sum(max(1, ceil(len(part) / width)) for part in text.split("\n")))
    return None if lines == 1 else min(lines, most_lines) * _POINTS


def heading_width(name: str, lines: int) -> float:
    """Returns the smallest column width at which the bold heading fits into the given number of lines."""
    words = name.split()
    longest = max(map(len, words), default=0)
    while _lines(words, longest) > lines:
        longest += 1
    return round(longest * _BOLD + 1.5, 2)


def _lines(words: Sequence[str], longest: int) -> int:
    count, taken = 1, -1
    for word in words:
        taken += len(word) + 1
        if taken > longest:
            count, taken = count + 1, len(word)
    return count


def styled_cell(sheet: "Worksheet", look: CellLook, quoted: bool) -> "Cell":
    """Returns an empty cell with that look; `quoted` keeps its value as text, as a leading apostrophe does in Excel."""
    from openpyxl.cell.cell import WriteOnlyCell
    from openpyxl.styles import Alignment, Font, PatternFill

    cell = WriteOnlyCell(sheet)
    cell.font = Font(
        name="Calibri", size=look.size, bold=look.bold, italic=look.italic, color=look.colour,
        underline="single" if look.underline else None,
    )  # fmt: skip
    cell.alignment = Alignment(
        horizontal=look.align or None,
        vertical="center" if look.fill else "top",
        wrap_text=look.wrap or None,
        indent=look.indent,
    )
    if look.fill:
        cell.fill = PatternFill("solid", fgColor=look.fill)
    cell.number_format = look.format
    if quoted:
        cell.quotePrefix = True
    return cell


def colour_rates(sheet: "Worksheet", cells: str) -> None:
    """Colours numbers from 0 to 1 in one range of cells, or in several ranges separated by spaces."""
    from openpyxl.formatting import rule

    scale: Any = rule.ColorScaleRule(  # type: ignore[no-untyped-call]
        start_type="num", start_value=0, start_color=BAD,
        mid_type="num", mid_value=0.5, mid_color=FAIR,
        end_type="num", end_value=1, end_color=GOOD,
    )  # fmt: skip
    sheet.conditional_formatting.add(cells, scale)


def colour_verdicts(sheet: "Worksheet", cells: str, *, good: bool) -> None:
    """Colours true and false in a range but not empty cells; `good` says whether true is shown green."""
    from openpyxl.formatting import rule
    from openpyxl.styles import PatternFill

    first = cells.partition(":")[0]
    for condition, colour in ((first, GOOD if good else BAD), (f"NOT({first})", BAD if good else GOOD)):
        fill = PatternFill("solid", bgColor=colour)
        formula = [f"AND(ISLOGICAL({first}),{condition})"]
        holds: Any = rule.FormulaRule(formula=formula, fill=fill)  # type: ignore[no-untyped-call]
        sheet.conditional_formatting.add(cells, holds)


def compressed(rows: list[int], letter: str) -> str:
    """Returns the cells of a column in these rows as ranges, such as `F2:F4 F9:F9`."""
    ranges: list[list[int]] = []
    for row in rows:
        if ranges and ranges[-1][1] == row - 1:
            ranges[-1][1] = row
        else:
            ranges.append([row, row])
    return " ".join(f"{letter}{first}:{letter}{last}" for first, last in ranges)

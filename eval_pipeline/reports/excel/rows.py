"""Writes the rows of sheets as XML text; openpyxl's 20 µs per cell would be most of the time of a report."""

from collections.abc import Iterable
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from eval_pipeline.reports.excel.looks import CellLook, Styled, of_value, styled_cell
from eval_pipeline.reports.excel.printing import Fold
from eval_pipeline.reports.excel.text import cell_text, looks_like_formula

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

"""A sheet that is read from top to bottom: titles, notes and small tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eval_pipeline.reports.excel.looks import (
    HEADER,
    HEADER_RIGHT,
    NOTE,
    PLAIN,
    SECTION,
    SUBTITLE,
    TITLE,
    CellMaker,
    Look,
    Styled,
    Value,
    fit_to_width,
)

if TYPE_CHECKING:
    from openpyxl import Workbook
    from openpyxl.worksheet._write_only import WriteOnlyWorksheet


@dataclass(frozen=True, slots=True)
class Rows:
    """Where a table came to stand: its first and last row of values, 1-based; none where last < first."""

    header: int
    first: int
    last: int


class Page:
    """Writes a sheet downwards.

    Attributes:
        sheet: openpyxl's.
        next_row: the row that is written next, 1-based.
    """

    def __init__(self, workbook: "Workbook", title: str, widths: Sequence[float], frozen: str = "") -> None:
        from openpyxl.utils import get_column_letter

        self.sheet: WriteOnlyWorksheet = workbook.create_sheet(title)
        self.next_row = 1
        self._columns = len(widths)
        self._maker = CellMaker(self.sheet)
        for place, width in enumerate(widths, start=1):
            self.sheet.column_dimensions[get_column_letter(place)].width = width
        if frozen:
            self.sheet.freeze_panes = frozen
        self.sheet.sheet_view.showGridLines = False
        fit_to_width(self.sheet)

    def row(self, *cells: Styled) -> int:
        """Writes a row; gives its number."""
        self.sheet.append(self._maker.row(cells))
        self.next_row += 1
        return self.next_row - 1

    def blank(self, rows: int = 1) -> None:
        """Leaves rows empty."""
        for _ in range(rows):
            self.sheet.append([])
            self.next_row += 1

    def title(self, text: str, *subtitles: str) -> None:
        """The sheet's heading."""
        self.row((text, TITLE))
        for subtitle in subtitles:
            self.row((subtitle, SUBTITLE))

    def band(self, text: str, look: Look) -> None:
        """A text over the whole width, on a coloured ground."""
        self.row((text, look), *[(None, look)] * (self._columns - 1))

    def section(self, text: str) -> None:
        """A heading with room above."""
        self.blank()
        self.row((text, SECTION))

    def note(self, text: str) -> None:
        """A remark."""
        self.row((text, NOTE))

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[Styled]], texts: int = 1) -> Rows:
        """Writes a table.

        Args:
            headers: of the columns; those without text get no header's ground.
            rows: as many cells as headers each.
            texts: how many columns from the left hold text and not numbers; the header `note` is text too.
        """
        looks = [HEADER if place < texts or name in TEXT_HEADERS else HEADER_RIGHT for place, name in enumerate(headers)]
        header = self.row(*zip(headers, looks, strict=True))
        for row in rows:
            self.row(*row)
        return Rows(header, header + 1, self.next_row - 1)

    def facts(self, facts: Sequence[tuple[str, Value, Look]]) -> None:
        """Names and values, a pair a row."""
        for name, value, look in facts:
            self.row((name, SUBTITLE), (value, look))


TEXT_HEADERS = frozenset({"note", "question", "conversation", "how it is meant", "example", "turn"})


def plain(*values: Value) -> list[Styled]:
    """Values without a look of their own."""
    return [(value, PLAIN) for value in values]

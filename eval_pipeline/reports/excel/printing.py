"""Makes sheets that are read on paper, too: what is printed of a sheet, and rows and columns that are folded away.

What is folded is neither shown nor printed until a reader clicks the plus sign beside it; readers by program see it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

Orientation = Literal["landscape", "portrait"]
Fold = Literal["", "head", "inside"]
"""Whether a row is the head of folded rows, or one of these below it."""

ROW_HEIGHT = 15.0
"""Height in points of a row that sets none."""
_WIDTH, _HEIGHT = 730.0, 520.0
"""Points that a landscape page has room for beside margins and footer, on A4 and on Letter."""
_UNIT = 7.1
"""Points of one unit of column width where Calibri is missing and a wider font takes its place; else 5.3."""
_WIDEST = 190.0
"""Units of width that can be read on a page."""


def page_setup(sheet: "Worksheet", orientation: Orientation = "landscape") -> None:
    """Sets up printing: narrow margins, and a foot with the sheet's name and the page."""
    from openpyxl.worksheet.page import PageMargins

    sheet.page_setup.orientation = orientation
    sheet.page_margins = PageMargins(left=0.4, right=0.4, top=0.5, bottom=0.55, header=0.2, footer=0.25)
    write_foot(sheet, "&A")


def write_foot(sheet: "Worksheet", text: str) -> None:
    """Sets the text at the foot of each page; `&A` stands for the sheet's name."""
    foot: Any = sheet.oddFooter
    foot.left.text, foot.right.text = text, "&P of &N"


def fit_to_width(sheet: "Worksheet", orientation: Orientation = "landscape", pages: int = 0) -> None:
    """Sets up printing with all columns on one page, and on at most `pages` pages if it is not 0."""
    from openpyxl.worksheet.properties import PageSetupProperties

    page_setup(sheet, orientation)
    sheet.page_setup.fitToHeight = pages
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)


def printed_columns(widths: Sequence[float]) -> int:
    """Returns how many of the first columns are wide enough together to be read on one page."""
    taken = 0.0
    for place, width in enumerate(widths):
        taken += width
        if taken > _WIDEST:
            return max(place, 1)
    return len(widths)


def scale_for(widths: Sequence[float]) -> int:
    """Returns the percentage at which columns of these widths fit on a landscape page, whatever the font."""
    return int(min(100.0, 100 * _WIDTH / (_UNIT * sum(widths))))


def rows_on_paper(scale: int, heights: Sequence[float], pages: int) -> int:
    """Returns how many rows of these heights (the header first) fit on so many landscape pages of that scale.

    The header is repeated on each page, and a row is not divided.
    """
    room = 100 * _HEIGHT / scale - heights[0]
    page, left = 1, room
    for place, tall in enumerate(heights[1:], start=1):
        if tall > left:
            page, left = page + 1, room
            if page > pages:
                return place
        left -= tall
    return len(heights)


def foldable(sheet: "Worksheet") -> None:
    """Makes rows and columns of the sheet foldable, with the plus sign at the row above."""
    from openpyxl.worksheet.properties import Outline

    sheet.sheet_properties.outlinePr = Outline(summaryBelow=False, summaryRight=False)
    sheet.sheet_format.outlineLevelRow = sheet.sheet_format.outlineLevelCol = 1


def fold_columns(sheet: "Worksheet", letters: Sequence[str]) -> None:
    """Folds columns away; call `foldable` once before."""
    for letter in letters:
        sheet.column_dimensions[letter].outlineLevel = 1
        sheet.column_dimensions[letter].hidden = True

"""Conditional formats: a red-yellow-green scale for rates, and green or red for true and false."""

from typing import TYPE_CHECKING, Any

from eval_pipeline.reports.excel.looks import BAD, FAIR, GOOD

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet


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

"""The sheet `Statistics`: every metric over all turns and over every split."""

from typing import TYPE_CHECKING, Any

from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.excel.colours import colour_rates, compressed
from eval_pipeline.reports.excel.looks import BY_UNIT, INTEGER, PLAIN, CellMaker, HEADER, HEADER_RIGHT, NOTE, Look, Styled, fit_to_width

if TYPE_CHECKING:
    from openpyxl import Workbook

_HEADERS = (
    ("metric", 26), ("split", 24), ("group", 20), ("n", 9), ("clusters", 10), ("mean", 13), ("se", 12),
    ("95% low", 13), ("95% high", 13), ("method", 17), ("metric failures", 10), ("mean without failures", 13),
    ("reason", 34), ("meaning", 70),
)  # fmt: skip
_TEXTS = frozenset({"metric", "split", "group", "method", "reason", "meaning"})


def write_statistics_sheet(workbook: "Workbook", evaluation: Evaluation) -> None:
    """Writes the sheet."""
    from openpyxl.utils import get_column_letter

    sheet = workbook.create_sheet("Statistics")
    sheet.freeze_panes = "B2"
    for place, (_, width) in enumerate(_HEADERS, start=1):
        sheet.column_dimensions[get_column_letter(place)].width = width
    sheet.row_dimensions[1].height = 32
    fit_to_width(sheet)
    sheet.print_title_rows = "1:1"
    maker = CellMaker(sheet)
    sheet.append(maker.row((name, HEADER if name in _TEXTS else HEADER_RIGHT) for name, _ in _HEADERS))
    numbered = {row["axis"] for row in evaluation.ceilings} | {"turn_number"}
    rates: list[int] = []
    for number, row in enumerate(evaluation.statistics, start=2):
        sheet.append(maker.row(_cells(evaluation, row, row["split"] in numbered)))
        unit = evaluation.profile.unit(row["metric"])
        if unit in ("rate", "score") and row["metric"] != "has_error":
            rates.append(number)
    sheet.auto_filter.ref = f"A1:{get_column_letter(len(_HEADERS))}{len(evaluation.statistics) + 1}"
    if rates:
        colour_rates(sheet, compressed(rates, "F"))


def _cells(evaluation: Evaluation, row: Row, numbered: bool) -> list[Styled]:
    figure, count = Look(BY_UNIT[evaluation.profile.unit(row["metric"])]), Look(INTEGER)
    group: Any = row["split_value"]
    return [
        (row["metric"], PLAIN), (row["split"], PLAIN), (int(group) if numbered else group, Look("0") if numbered else PLAIN),
        (row["n"], count), (row["clusters"], count), (row["mean"], figure), (row["se"], figure),
        (row["low"], figure), (row["high"], figure), (row["method"], PLAIN), (row["failures"] or None, count),
        (row["mean_without_failures"] if row["failures"] else None, figure), (row["reason"], NOTE),
        (evaluation.profile.meaning(row["metric"]), NOTE),
    ]  # fmt: skip

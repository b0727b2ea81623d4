"""The sheet `Statistics`: every metric over all turns and for each split."""

from eval_pipeline.reports.evaluation import ALL, Evaluation, Row
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.colours import colour_rates, compressed
from eval_pipeline.reports.excel.looks import (
    BY_UNIT,
    COUNT,
    HEADER_RIGHT,
    HEADER_TEXT,
    NOTE,
    TEXT,
    WHOLE,
    Look,
    Styled,
    fit_to_width,
)
from eval_pipeline.reports.profile import OF_CASES, WORSE_WHEN_HIGH
from eval_pipeline.reports.queries import statistics_query

_HEADERS = (
    ("metric", 26), ("split", 24), ("group", 22), ("n", 9), ("clusters", 10), ("mean", 13), ("se", 12),
    ("95% low", 13), ("95% high", 13), ("method", 18), ("metric failures", 10), ("mean without failures", 14.5),
    ("reason", 30), ("meaning", 100),
)  # fmt: skip
_TEXTS = frozenset({"metric", "split", "group", "method", "reason", "meaning"})


def write_statistics_sheet(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet, with the figures over all turns first."""
    from openpyxl.utils import get_column_letter

    sheet = book.sheet("Statistics")
    sheet.freeze_panes = "B2"
    for place, (_, width) in enumerate(_HEADERS, start=1):
        sheet.column_dimensions[get_column_letter(place)].width = width
    fit_to_width(sheet)
    sheet.print_title_rows = "1:1"
    numbered = {row["axis"] for row in evaluation.ceilings} | {"turn_number"}
    apart = evaluation.profile.apart
    found = [row for row in evaluation.statistics if row["metric"].removeprefix(OF_CASES) not in apart]
    rows = sorted(found, key=lambda row: row["split"] != ALL)
    book.add_query(sheet.title, "all rows", statistics_query(evaluation.partition))
    written, rates = book.rows_of(sheet), []
    written.append([(name, HEADER_TEXT if name in _TEXTS else HEADER_RIGHT) for name, _ in _HEADERS], 30)
    for row in rows:
        written.append(_cells(evaluation, row, row["split"] in numbered))
        if evaluation.profile.unit(row["metric"]) in ("rate", "score") and row["metric"] not in WORSE_WHEN_HIGH:
            rates.append(written.last_row)
    sheet.auto_filter.ref = f"A1:{get_column_letter(len(_HEADERS))}{written.last_row}"
    if rates:
        colour_rates(sheet, compressed(rates, "F"))


def _cells(evaluation: Evaluation, row: Row, numbered: bool) -> list[Styled]:
    figure, group = Look(BY_UNIT[evaluation.profile.unit(row["metric"])]), row["split_value"]
    shown = (int(group), Look(WHOLE, align="left", indent=1)) if numbered else (group, TEXT)
    method = None if row["method"] == "none" else row["method"]
    failed = row["failures"] > 0
    return [
        (row["metric"], TEXT), (row["split"], TEXT), shown, (row["n"], COUNT), (row["clusters"], COUNT),
        (row["mean"], figure), (row["se"], figure), (row["low"], figure), (row["high"], figure), (method, TEXT),
        (row["failures"] if failed else None, COUNT), (row["mean_without_failures"] if failed else None, figure),
        (row["reason"], NOTE), (evaluation.profile.meaning(row["metric"]), NOTE),
    ]  # fmt: skip

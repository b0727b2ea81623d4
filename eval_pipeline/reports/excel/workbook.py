"""The workbook with all its sheets, in order."""

from collections.abc import Callable
from pathlib import Path

from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.sheets.comparison import write_comparison_sheet
from eval_pipeline.reports.excel.sheets.cost import write_cost
from eval_pipeline.reports.excel.sheets.gold import write_gold, write_queries
from eval_pipeline.reports.excel.sheets.overview import draw_overview, write_complexity, write_overview
from eval_pipeline.reports.excel.sheets.statistics import (
    write_calibration,
    write_further,
    write_mistakes_sheet,
    write_statistics_sheet,
)
from eval_pipeline.reports.excel.sheets.turns import write_errors_sheet, write_turns_sheet
from eval_pipeline.reports.places.paths import WORKBOOK

SHEETS: tuple[Callable[[Book, Evaluation], None], ...] = (
    write_overview,
    write_mistakes_sheet,
    write_statistics_sheet,
    write_turns_sheet,
    write_errors_sheet,
    write_complexity,
    write_cost,
    write_comparison_sheet,
    write_gold,
    write_calibration,
    write_further,
)
"""The functions that write the sheets, in order. To add a sheet, add a module and an entry here."""


def write_workbook(evaluation: Evaluation, folder: Path) -> None:
    """Writes `report.xlsx`."""
    book = Book()
    for write in evaluation.profile.sheets:
        write(book, evaluation)
    own = len(book.titles)
    for write in SHEETS:
        write(book, evaluation)
    draw_overview(book, evaluation)
    book.own_sheets_last(own)
    write_queries(book)
    part = evaluation.partition
    title = f"{part.suite} · {part.model_version} · {part.eval_date.isoformat()}"
    book.save(folder / WORKBOOK, title, part.eval_date, "simulated" if evaluation.simulated else "")

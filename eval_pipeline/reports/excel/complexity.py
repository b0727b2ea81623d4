"""The sheet `Complexity`: accuracy against every axis of complexity, with the ceiling."""

from typing import TYPE_CHECKING

from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.excel.ceilings import axis_title, ceiling_sentence
from eval_pipeline.reports.excel.charts import CHART_ROWS, AccuracyColumns, add_accuracy_chart
from eval_pipeline.reports.excel.colours import colour_rates
from eval_pipeline.reports.excel.looks import INTEGER, NOTE, PERCENT, SCORE, Look, Styled
from eval_pipeline.reports.excel.page import Page

if TYPE_CHECKING:
    from openpyxl import Workbook

_HEADERS = ("level", "turns", "conversations", "accuracy", "95% low", "95% high", "up", "down", "threshold", "note")
_WIDTHS = (14, 9, 14, 11, 10, 10, 9, 9, 11, 30)
_COLUMNS = AccuracyColumns(level=1, accuracy=4, up=7, down=8, threshold=9)
_CHART_COLUMN = "L"


def write_complexity(workbook: "Workbook", evaluation: Evaluation) -> None:
    """Writes the sheet."""
    page = Page(workbook, "Complexity", (*_WIDTHS, 3))
    page.title("Accuracy against complexity", "Whiskers are 95% intervals, clustered by conversation.")
    for ceiling in evaluation.ceilings:
        _axis(page, ceiling, [row for row in evaluation.levels if row["axis"] == ceiling["axis"]])


def _axis(page: Page, ceiling: Row, levels: list[Row]) -> None:
    title, sentence = axis_title(ceiling["axis"]), ceiling_sentence(ceiling)
    page.section(f"By {title}")
    start = page.next_row
    page.note(sentence)
    if ceiling["slope"] is not None:
        page.note(f"odds of a correct turn change by a factor of {ceiling['odds_ratio']:.3g} a step (p = {ceiling['p_value']:.2g})")
    elif ceiling["reason"] and ceiling["reason"] != sentence:
        page.note(ceiling["reason"])
    if not levels:
        page.note("no turn has a level on this axis")
        return
    found = page.table(_HEADERS, [_cells(row, ceiling["threshold"]) for row in levels], texts=0)
    colour_rates(page.sheet, f"D{found.first}:D{found.last}")
    highest = max(row["level"] for row in levels)
    chart_title = f"Accuracy by {title}: {sentence}"
    add_accuracy_chart(page.sheet, found, _COLUMNS, chart_title, title, highest, f"{_CHART_COLUMN}{start}")
    page.blank(max(0, start + CHART_ROWS - page.next_row))


def _cells(row: Row, threshold: float) -> list[Styled]:
    count, rate, helper = Look(INTEGER), Look(PERCENT), Look(SCORE, colour="6B7280")
    return [
        (row["level"], Look("0")), (row["n"], count), (row["clusters"], count), (row["accuracy"], Look(PERCENT, bold=True)),
        (row["low"], rate), (row["high"], rate),
        (_distance(row["high"], row["accuracy"]), helper), (_distance(row["accuracy"], row["low"]), helper),
        (threshold, Look("0%", colour="6B7280")), (row["reason"], NOTE),
    ]  # fmt: skip


def _distance(high: float | None, low: float | None) -> float | None:
    return None if high is None or low is None else max(high - low, 0.0)

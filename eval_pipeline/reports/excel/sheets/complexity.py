"""The sheet `Complexity`: accuracy against each axis of complexity, with the ceiling."""

from typing import TYPE_CHECKING

from eval_pipeline.core import shown
from eval_pipeline.reports.contents.figures import FITTED, axis_title, ceiling_sentence
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.excel.book import Book, Rows
from eval_pipeline.reports.excel.charts import CHART_ROWS, AccuracyColumns, Plot, add_accuracy_chart
from eval_pipeline.reports.excel.colours import colour_rates
from eval_pipeline.reports.excel.looks import COUNT, FAINT, NOTE, PERCENT, SCORE, WHOLE, CellLook
from eval_pipeline.reports.excel.page import SheetWriter
from eval_pipeline.reports.excel.printing import fit_to_width, fold_columns, foldable
from eval_pipeline.reports.queries import table_query, where

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

_WIDTHS = (14, 9, 14, 11, 10, 10, 9, 9, 11, 10, 30)
_COLUMNS = AccuracyColumns(level=1, accuracy=4, up=7, down=8, threshold=9, fitted=10)
_IN_SENTENCE = ("the monotone curve never falls", "interval open")
_HELPER = CellLook(SCORE, colour=FAINT)
_SHOWN = (
    ("level", "level", CellLook(WHOLE, align="left")),
    ("turns", "n", COUNT),
    ("clusters", "clusters", COUNT),
    ("accuracy", "accuracy", CellLook(PERCENT, bold=True)),
    ("95% low", "low", CellLook(PERCENT)),
    ("95% high", "high", CellLook(PERCENT)),
    ("up", "up", _HELPER),
    ("down", "down", _HELPER),
    ("threshold", "threshold", CellLook("0%", colour=FAINT)),
    ("fitted", "fitted", CellLook(PERCENT)),
    ("note", "note", NOTE),
)
"""Header, column of the query, and look."""
_CHART_COLUMN = "M"
_LEVELS = (
    "SELECT axis, level, n, clusters, accuracy, low, high, if(high < accuracy, 0, high - accuracy) AS up, "
    "if(low > accuracy, 0, accuracy - low) AS down, threshold, a.fitted, a.reason AS note "
    "FROM accuracy_by_complexity AS a JOIN complexity_ceiling AS c USING (suite, model_version, eval_date, axis) "
    "WHERE {where} ORDER BY axis, level"
)


def write_complexity(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet."""
    page = SheetWriter(book, "Complexity", (*_WIDTHS, 3))
    page.title(
        "Accuracy against complexity",
        "Whiskers are 95% intervals, clustered by conversation or group; up and down are their lengths.",
        FITTED,
    )
    fit_to_width(page.sheet, pages=1)
    foldable(page.sheet)
    fold_columns(page.sheet, "GHI")
    sql = _LEVELS.format(where=where(evaluation.partition, "a"))
    page.query("Levels", sql)
    page.query("Fit and ceiling", table_query(evaluation.partition, "complexity_ceiling"))
    levels = evaluation.query(sql)
    for ceiling in evaluation.ceilings:
        _axis(book, page, evaluation, ceiling, [row for row in levels if row["axis"] == ceiling["axis"]])


def level_table(ceiling: Row) -> str:
    """Returns the name of an axis's table for charts of other sheets."""
    return f"levels of {ceiling['axis']}"


def add_level_chart(
    sheet: "Worksheet", evaluation: Evaluation, ceiling: Row, table: tuple["Worksheet", Rows], anchor: str,
    width: float = 16.0, told: str = "",
) -> None:  # fmt: skip
    """Adds the chart of an axis to a sheet, drawn from its table (sheet and rows); `told` follows in its title."""
    title = axis_title(ceiling["axis"])
    plot = Plot(f"Accuracy by {title}{told}", title, "share of correct turns", anchor, width)
    highest = max(row["level"] for row in evaluation.levels if row["axis"] == ceiling["axis"])
    add_accuracy_chart(sheet, plot, table, _COLUMNS, highest)


def _axis(book: Book, page: SheetWriter, evaluation: Evaluation, ceiling: Row, levels: list[Row]) -> None:
    title, sentence = axis_title(ceiling["axis"]), ceiling_sentence(ceiling)
    page.section(f"By {title}")
    start = page.next_row
    page.note(sentence)
    if ceiling["slope"] is not None:
        odds, p = ceiling["odds_ratio"], ceiling["p_value"]
        page.note(f"a step multiplies the odds of a correct turn by {shown.number(odds)} (p {shown.p_value(p)})")
    for reason in (ceiling["reason"] or "").split("; "):
        if reason and reason != sentence and not reason.startswith(_IN_SENTENCE):
            page.note(reason)
    if not levels:
        page.note("no turn has a level on this axis")
        return
    cells = [[(row[name], look) for _, name, look in _SHOWN] for row in levels]
    found = page.table([header for header, _, _ in _SHOWN], cells)
    colour_rates(page.sheet, f"D{found.first}:D{found.last}")
    table = book.tables[level_table(ceiling)] = page.sheet, found
    add_level_chart(page.sheet, evaluation, ceiling, table, f"{_CHART_COLUMN}{start}", told=f": {sentence}")
    page.blank(max(0, start + CHART_ROWS - page.next_row))

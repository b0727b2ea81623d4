"""The sheet `Calibration`, for tracks whose answers state how confident they are."""

from eval_pipeline.reports.contents.figure_table import FigureColumn, FigureTable
from eval_pipeline.reports.evaluation import ALL, Evaluation, Row
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.charts import CHART_ROWS, Plot, add_columns_chart
from eval_pipeline.reports.excel.looks import NOTE, PLAIN, SCORE, CellLook
from eval_pipeline.reports.excel.page import SheetWriter
from eval_pipeline.reports.excel.printing import fit_to_width
from eval_pipeline.reports.queries import table_query
from eval_pipeline.store.tables import CALIBRATION

_WIDTHS = (34, 12, 12, 12, 12, 12, 12, 40)
_SCORES = (
    "calibration_score", "reliability", "resolution", "ece", "brier", "brier_reliability", "brier_resolution",
    "brier_uncertainty",
)  # fmt: skip

_LEVELS = (
    FigureColumn("level", "level"), FigureColumn("promised", "nominal", "rate"),
    FigureColumn("right", "accuracy", "rate"),
    FigureColumn("95% low", "low", "rate"), FigureColumn("95% high", "high", "rate"),
    FigureColumn("answers", "n", "tokens"),
    FigureColumn("clusters", "clusters", "tokens"), FigureColumn("note", "reason", "note"),
)  # fmt: skip


def write_calibration(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet; does nothing if the track has no calibration figures."""
    rows = evaluation.optional(CALIBRATION)
    if not rows:
        return
    page = SheetWriter(book, "Calibration", _WIDTHS)
    page.title("Calibration", "Whether the words for confidence say how often answers are right.")
    fit_to_width(page.sheet, pages=1)
    overall = next(row for row in rows if row["level"] == ALL)
    page.section("Scores")
    for text in (overall["verdict"], overall["warning"], overall["reason"]):
        if text:
            page.note(text)
    columns = {column.name: column.comment for column in CALIBRATION.columns}
    page.table(
        ["score", "value", "note"],
        [[(name, PLAIN), (overall[name], CellLook(SCORE, bold=True)), (columns[name], NOTE)] for name in _SCORES],
    )
    _levels(page, [row for row in rows if row["level"] != ALL])
    page.query("Scores and levels", table_query(evaluation.partition, CALIBRATION.name))


def _levels(page: SheetWriter, levels: list[Row]) -> None:
    if not levels:
        page.section("By level of confidence")
        page.note("no answer said how sure it was")
        return
    table = page.figures(FigureTable("By level of confidence", _LEVELS, levels, []))
    page.blank()
    plot = Plot("Promised and reached accuracy", "confidence", "accuracy", f"A{page.next_row}", 16)
    add_columns_chart(page.sheet, plot, table, names=1, values=(2, 3), number_format="0%")
    page.blank(CHART_ROWS)

"""The sheet `Comparison`: paired differences between model versions."""

from collections.abc import Sequence

from eval_pipeline.core.shown import Unit
from eval_pipeline.reports.comparison.suite import Row, differs, pairs_of_query
from eval_pipeline.reports.comparison.words import READING, pair_verdict
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.looks import (
    COUNT,
    DECIMAL,
    NOTE,
    PLAIN,
    CellLook,
    Styled,
    figure_cell,
    figure_cells,
    heading_width,
)
from eval_pipeline.reports.excel.page import SheetWriter
from eval_pipeline.reports.excel.printing import fold_columns, foldable

_LINES = 2
"""How many lines the headings take."""
_COLUMNS = (
    ("second model version", 24), ("minus the first", 24), ("accuracy second", 10), ("accuracy first", 10),
    ("difference, points", 11), ("corrected 95% low", 11), ("corrected 95% high", 11), ("p corrected", 10),
    ("p by t", 10), ("p by sign flips", 10), ("turns answered by both", 9), ("clusters", 9), ("broken", 8),
    ("fixed", 8), ("conservative difference, points", 12), ("its 95% low", 10), ("its 95% high", 10),
    ("its p by t", 10), ("its p by sign flips", 10), ("common turns", 9), ("unanswered second", 11),
    ("unanswered first", 11), ("correlation", 10), ("smallest detectable, points", 11), ("tokens per turn", 11),
    ("US dollars per turn", 12), ("latency per turn", 12), ("verdict", 30),
)  # fmt: skip


_COSTS: Sequence[tuple[str, Unit]] = (
    ("tokens_difference", "tokens"), ("usd_difference", "usd"), ("latency_ms_difference", "ms"),
)  # fmt: skip
_FOLDED = (
    "p by t", "p by sign flips", "conservative difference, points", "its 95% low", "its 95% high", "its p by t",
    "its p by sign flips", "common turns", "unanswered second", "unanswered first", "correlation",
)  # fmt: skip
"""What only some readers ask for."""


def write_comparison_sheet(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet for one evaluation: its comparisons with the other model versions of the suite."""
    page = comparison_page(book)
    if not evaluation.comparisons:
        page.note("No comparison of this evaluation is on record: it is not the newest of its model version, or alone.")
        return
    write_pairs(page, evaluation.comparisons, pairs_of_query(evaluation.partition))


def comparison_page(book: Book) -> SheetWriter:
    """Returns a new sheet that contains only the title."""
    from openpyxl.utils import get_column_letter

    page = SheetWriter(book, "Comparison", [max(width, heading_width(name, _LINES)) for name, width in _COLUMNS])
    foldable(page.sheet)
    names = [name for name, _ in _COLUMNS]
    fold_columns(page.sheet, [get_column_letter(names.index(name) + 1) for name in _FOLDED])
    page.title("Model versions compared, turn by turn", *READING)
    page.blank()
    return page


def write_pairs(page: SheetWriter, pairs: Sequence[Row], query: str) -> None:
    """Writes one row per pair of model versions."""
    page.table([name for name, _ in _COLUMNS], [_cells(row) for row in pairs], header_height=_LINES * 15)
    page.query("Pairs", query)


def _cells(row: Row) -> list[Styled]:
    difference = figure_cell(row["difference"], "points", row["low"], row["high"], bold=True)
    _, *corrected = figure_cells(row["difference"], "points", row["low_corrected"], row["high_corrected"])
    alone = figure_cells(row["conservative_difference"], "points", row["conservative_low"], row["conservative_high"])
    least = row["minimum_detectable_difference"]
    return [
        (row["model_b"], PLAIN), (row["model_a"], PLAIN),
        *(figure_cell(row[f"accuracy_{side}"], "rate", row["low"], row["high"]) for side in "ba"),
        difference, *corrected,
        *(figure_cell(row[name], "p") for name in ("p_corrected", "p_value", "p_exact")),
        (row["n"], COUNT), (row["clusters"], COUNT), (row["broken"], COUNT), (row["fixed"], COUNT),
        *alone, figure_cell(row["conservative_p_value"], "p"),
        figure_cell(row["conservative_p_exact"], "p"), (row["conservative_n"], COUNT), (row["unanswered_b"], COUNT),
        (row["unanswered_a"], COUNT), (row["correlation"], CellLook(DECIMAL)),
        (None if least is None else 100 * least, CellLook("0.0")),
        *(figure_cell(row[name], unit, differs=True) for name, unit in _COSTS),
        (pair_verdict(row), CellLook(bold=True, align="left", indent=1) if differs(row) else NOTE),
    ]  # fmt: skip

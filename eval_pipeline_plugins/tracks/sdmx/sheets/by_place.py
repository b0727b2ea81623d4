"""The sheet `By dimension`: turns and terms by dimension and by data set, with charts, and a heat map by tag."""

from collections.abc import Mapping

from eval_pipeline.reports.contents.figure_table import FigureColumn, FigureTable
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.charts import CHART_ROWS, Plot, add_columns_chart
from eval_pipeline.reports.excel.looks import COUNT, PERCENT, PLAIN, CellLook, Styled, colour_rates
from eval_pipeline.reports.excel.page import SheetWriter
from eval_pipeline.reports.excel.printing import fit_to_width
from eval_pipeline_plugins.tracks.sdmx.sheets.places import (
    BY,
    COUNTS,
    READING,
    STATES,
    counts_query,
    heat_map,
    tags_query,
)

TITLE = "By dimension"
_WIDTHS = (44, *(12,) * 9)
_HEADERS = ("turns", *STATES.values(), "terms in targets", "found", "missed", "extra terms")
_COLUMNS = tuple(FigureColumn(header, name, "tokens") for header, name in zip(_HEADERS, COUNTS, strict=True))
_STATE_COLUMNS = range(3, 3 + len(STATES))
_CHARTED = ("dimension", "data set")
_RATE = CellLook(PERCENT)


def write_by_place(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet."""
    page = SheetWriter(book, TITLE, _WIDTHS)
    fit_to_width(page.sheet, "portrait", pages=1)
    page.title("By dimension and data set", READING)
    for by in BY:
        sql, start = counts_query(evaluation.partition, by), page.next_row + 1
        rows = evaluation.query(sql)
        table = page.figures(
            FigureTable(f"By {by}", (FigureColumn(by, "place"), *_COLUMNS), rows, [sql]), header_height=30
        )
        if by in _CHARTED and rows:
            plot = Plot(f"Turns by {by}", by, "turns", f"L{start}")
            add_columns_chart(page.sheet, plot, table, 1, _STATE_COLUMNS, "0", stacked=True)
            page.blank(max(0, start + CHART_ROWS - page.next_row))
    _heat_map(page, evaluation)


def _heat_map(page: SheetWriter, evaluation: Evaluation) -> None:
    dimensions, tags, cells = heat_map(evaluation)
    page.section("Dimension by tag: share of turns that are right there")
    if not cells:
        page.note("no turn that is counted is of a case with a tag")
        return
    page.note("Only the most frequent are shown; a case may have several tags. Below it, the turns that are counted.")
    rates = [[(name, PLAIN), *(_rate(cells, name, tag) for tag in tags)] for name in dimensions]
    table = page.table(["dimension", *tags], rates, header_height=30)
    colour_rates(page.sheet, f"B{table.first}:{_letter(len(tags) + 1)}{table.last}")
    page.blank()
    turns = [[(name, PLAIN), *(_turns(cells, name, tag) for tag in tags)] for name in dimensions]
    page.table(["dimension, turns", *tags], turns, header_height=30)
    page.query("Dimension by tag", tags_query(evaluation.partition))


def _rate(cells: Mapping[tuple[str, str], Row], dimension: str, tag: str) -> Styled:
    row = cells.get((dimension, tag))
    return (None if row is None else row["right"] / row["turns"]), _RATE


def _turns(cells: Mapping[tuple[str, str], Row], dimension: str, tag: str) -> Styled:
    row = cells.get((dimension, tag))
    return (None if row is None else row["turns"]), COUNT


def _letter(column: int) -> str:
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(column))

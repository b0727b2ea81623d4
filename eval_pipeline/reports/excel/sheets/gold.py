"""The sheets `Gold` (figures with and without overrides, the overrides, the suspects) and `Queries`."""

from collections.abc import Sequence

from eval_pipeline.reports.contents.gold import (
    READING,
    Row,
    data_text,
    edition_text,
    gold_tables,
    suspects_table,
)
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.long_sheet import Field, write_long_sheet
from eval_pipeline.reports.excel.page import SheetWriter
from eval_pipeline.reports.queries import table_query
from eval_pipeline.store.tables import GOLD_EDITIONS

TITLE = "Gold"
WIDTHS = (40, 12, 14, 26, 26, 12, 90)


def write_gold(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet for one evaluation."""
    page = SheetWriter(book, TITLE, WIDTHS)
    page.title("The gold: its editions, overrides and suspects", READING)
    page.fact("Edition of the gold", edition_text(evaluation.editions) or "not on record")
    page.fact("Edition of the data set", data_text(evaluation.editions) or "not on record")
    page.query("Editions", table_query(evaluation.partition, GOLD_EDITIONS.name))
    shown = list(gold_tables(evaluation))
    if not shown:
        page.section("Figures with and without overrides")
        page.note("No turn of this evaluation is overridden.")
    for table in shown:
        page.figures(table)
    write_suspects(page, evaluation.partition.suite, evaluation.suspects)


def write_suspects(page: SheetWriter, suite: str, suspects: Sequence[Row]) -> None:
    """Writes all suspects that nobody has decided on yet."""
    table = suspects_table(suite, suspects)
    if suspects:
        page.figures(table)
    else:
        page.section(table.caption)
        page.query(table.caption, *table.sql)
        page.note("Nothing speaks against the gold of any turn that nobody has decided on.")


_FIELDS = (Field("sheet", 16), Field("part", 34), Field("SQL on the published store", 140, wrap=True))


def write_queries(book: Book) -> None:
    """Writes the sheet; call it after all others."""
    order = {title: place for place, title in enumerate(book.titles)}
    queries = sorted(book.queries, key=lambda query: order[query.sheet])
    rows = [{"sheet": q.sheet, "part": q.what, "SQL on the published store": q.sql} for q in queries]
    write_long_sheet(book, "Queries", _FIELDS, rows, frozen=1)

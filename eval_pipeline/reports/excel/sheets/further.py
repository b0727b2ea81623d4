"""The sheets of aggregates that packages add: their rows as they are."""

from typing import Any

from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.looks import PLAIN, WRAPPED, Styled
from eval_pipeline.reports.excel.page import Page
from eval_pipeline.reports.queries import table_query
from eval_pipeline.store.schemas import Table

_WIDTH = 18
_LONGEST_TITLE = 31
"""Characters that Excel allows."""


def write_further(book: Book, evaluation: Evaluation) -> None:
    """Writes a sheet an aggregate; nothing where no package adds any."""
    for table, rows in evaluation.further():
        _write(book, evaluation, table, rows)


def _write(book: Book, evaluation: Evaluation, table: Table, rows: list[Row]) -> None:
    names = [column.name for column in table.columns]
    page = Page(book, _title(book, table), [_WIDTH] * len(names))
    page.title(table.name, table.comment)
    page.blank()
    page.table(names, [[_cell(row[name]) for name in names] for row in rows])
    page.query("All rows", table_query(evaluation.partition, table.name))


def _title(book: Book, table: Table) -> str:
    """The table's name, as far as Excel can have it and no other sheet has it."""
    taken = {title.casefold() for title in book.titles}
    title = table.name[:_LONGEST_TITLE]
    while title.casefold() in taken:
        title = f"{title[: _LONGEST_TITLE - 1]}_"
    return title


def _cell(value: Any) -> Styled:
    if isinstance(value, bool):
        return ("yes" if value else "no"), PLAIN
    return (value, PLAIN) if isinstance(value, int | float) or value is None else (str(value), WRAPPED)

"""The sheets for further aggregates; they show the rows unchanged, and labels as a matrix, too."""

from collections.abc import Sequence
from typing import Any

from eval_pipeline.reports.confusion import CAPTION, confusion_of, is_confusion
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.looks import COUNT, PLAIN, WRAPPED, Look, Styled
from eval_pipeline.reports.excel.page import Page
from eval_pipeline.reports.queries import table_query
from eval_pipeline.store.schemas import Table

_WIDTH = 18
_NUMBER = Look("#,##0.0###")
"""Shows four decimals at most, as a column of a plug-in has no known unit."""
_LONGEST_TITLE = 31
"""The most characters that Excel allows in a sheet's title."""


def write_further(book: Book, evaluation: Evaluation) -> None:
    """Writes one sheet per added aggregate; does nothing if there are none."""
    for table, rows in evaluation.further():
        _write(book, evaluation, table, rows)


def _write(book: Book, evaluation: Evaluation, table: Table, rows: list[Row]) -> None:
    names = [column.name for column in table.columns]
    page = Page(book, _title(book, table), [_WIDTH] * max(len(names), _columns(table, rows)))
    page.title(table.name, table.comment)
    page.blank()
    if is_confusion(table.name) and (matrix := confusion_of(rows)):
        page.section(CAPTION)
        page.table(("expected", *matrix.given, "turns"), [_matrix_row(*row) for row in matrix.rows])
        page.section("The same as rows, with an example")
    page.table(names, [[_cell(row[name]) for name in names] for row in rows])
    page.query("All rows", table_query(evaluation.partition, table.name))


def _columns(table: Table, rows: list[Row]) -> int:
    matrix = confusion_of(rows) if is_confusion(table.name) else None
    return 0 if matrix is None else len(matrix.given) + 2


def _matrix_row(label: str, counts: Sequence[int], total: int) -> list[Styled]:
    return [(label, PLAIN), *((count or None, COUNT) for count in counts), (total, COUNT)]


def _title(book: Book, table: Table) -> str:
    """Returns the table's name, changed as needed to be a valid and unused sheet title."""
    taken = {title.casefold() for title in book.titles}
    title = table.name[:_LONGEST_TITLE]
    while title.casefold() in taken:
        title = f"{title[: _LONGEST_TITLE - 1]}_"
    return title


def _cell(value: Any) -> Styled:
    if isinstance(value, bool):
        return ("yes" if value else "no"), PLAIN
    if isinstance(value, float):
        return value, _NUMBER
    return (value, PLAIN) if isinstance(value, int) or value is None else (str(value), WRAPPED)

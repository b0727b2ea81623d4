"""The sheets for further aggregates; they show the rows unchanged, and labels as a matrix, too."""

from eval_pipeline.reports.contents.figures import further_tables, matrix_of
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.page import SheetWriter

_WIDTH = 18
_LONGEST_TITLE = 31
"""The most characters that Excel allows in a sheet's title."""


def write_further(book: Book, evaluation: Evaluation) -> None:
    """Writes one sheet per added aggregate; does nothing if there are none."""
    for table in further_tables(evaluation):
        name, _, comment = table.caption.partition(": ")
        matrix = matrix_of(table)
        columns = max(len(table.columns), len(matrix.columns) if matrix else 0)
        page = SheetWriter(book, _title(book, name), [_WIDTH] * columns)
        page.title(name, comment)
        page.blank()
        if matrix is not None:
            page.figures(matrix)
            page.section("The same as rows, with an example")
        page.figures(table, titled=False)


def _title(book: Book, name: str) -> str:
    """Returns the table's name, changed as needed to be a valid and unused sheet title."""
    taken = {title.casefold() for title in book.titles}
    title = name[:_LONGEST_TITLE]
    while title.casefold() in taken:
        title = f"{title[: _LONGEST_TITLE - 1]}_"
    return title

"""The sheet `Queries`: for every part of every sheet, the SQL that returns its figures."""

from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.long_sheet import Field, write_long_sheet

_FIELDS = (Field("sheet", 16), Field("part", 34), Field("SQL on the published store", 140, wrap=True))


def write_queries(book: Book) -> None:
    """Writes the sheet; call it after all others."""
    order = {title: place for place, title in enumerate(book.titles)}
    queries = sorted(book.queries, key=lambda query: order[query.sheet])
    rows = [{"sheet": q.sheet, "part": q.what, "SQL on the published store": q.sql} for q in queries]
    write_long_sheet(book, "Queries", _FIELDS, rows, frozen=1)

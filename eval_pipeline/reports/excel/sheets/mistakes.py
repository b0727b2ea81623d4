"""The sheet `Mistakes`: the wrong turns, the most frequent kind first, with what is wrong in each."""

from eval_pipeline.reports.contents.mistakes import mistakes
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.long_sheet import Field, write_long_sheet
from eval_pipeline.reports.excel.looks import SCORE, WHOLE
from eval_pipeline.reports.queries import mistakes_query
from eval_pipeline.reports.shown import place

TITLE = "Mistakes"
_SAMPLE = Field("sample", 9, WHOLE)
_FIELDS = (
    Field("turn", 36, link=lambda row: f"'Turns'!A{row['number'] + 2}"),
    Field("kind", 18),
    Field("score", 9, SCORE, rate=True),
    Field("question", 48, wrap=True),
    Field("what is wrong", 60, wrap=True),
    Field("expected", 44, wrap=True),
    Field("answer", 44, wrap=True),
)


def write_mistakes_sheet(book: Book, evaluation: Evaluation) -> None:
    """Writes the sheet; a suite without mistakes has only its header."""
    fields = [*_FIELDS[:1], *([_SAMPLE] if evaluation.several_samples else []), *_FIELDS[1:]]
    book.add_query(TITLE, "all rows", mistakes_query(evaluation.partition))
    rows = (
        row
        | {
            "turn": place(row["turn_id"]),
            "what is wrong": row["what"],
            "number": evaluation.order[row["turn_id"], row["sample"]],
        }
        for row in mistakes(evaluation)
    )
    write_long_sheet(book, TITLE, fields, rows, frozen=2, pages=2)

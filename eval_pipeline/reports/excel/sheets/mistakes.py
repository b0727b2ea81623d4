"""The sheet `Mistakes`: the wrong turns, the most frequent kind first, with what is wrong in each."""

from collections.abc import Iterator

from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.long_sheet import Field, write_long_sheet
from eval_pipeline.reports.excel.looks import SCORE, WHOLE
from eval_pipeline.reports.mistakes import Mistake, mistakes, mistakes_query

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
    write_long_sheet(book, TITLE, fields, _rows(evaluation, mistakes(evaluation)), frozen=2)


def _rows(evaluation: Evaluation, found: list[Mistake]) -> Iterator[Row]:
    prefix = f"{evaluation.partition.suite}/"
    for mistake in found:
        row = mistake.row
        yield {
            "turn": str(row["turn_id"]).removeprefix(prefix),
            "sample": row["sample"],
            "kind": mistake.kind,
            "score": row["score"],
            "question": row["question"],
            "what is wrong": mistake.what or mistake.message,
            "expected": row["expected"],
            "answer": row["answer"],
            "number": mistake.number,
        }

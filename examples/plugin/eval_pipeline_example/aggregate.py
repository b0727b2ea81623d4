"""An aggregate: how long answers are, a row for right ones and one for wrong ones."""

from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.analysis.aggregates.base import Aggregate, Row, Turns
from eval_pipeline.store.schemas import Column, Table

TABLE = Table(
    "answer_lengths",
    "One row for the turns that are right and one for the others: how long their answers are.",
    (
        Column("correct", "BOOLEAN", "Which turns; never NULL."),
        Column("n", "BIGINT", "Turns with an answer, from 0; never NULL."),
        Column("mean_characters", "DOUBLE", "Mean length of their answers; NULL: there are none."),
    ),
)


def length_rows(turns: Turns) -> list[Row]:
    """A row for right turns, a row for wrong ones."""
    pairs = zip(turns.wide["correct"].to_pylist(), turns.wide["answer"].to_pylist(), strict=True)
    found = [(correct, len(answer)) for correct, answer in pairs if answer is not None]
    return [_row(which, [length for correct, length in found if correct is which]) for which in (True, False)]


def _row(correct: bool, lengths: list[int]) -> Row:
    return {"correct": correct, "n": len(lengths), "mean_characters": sum(lengths) / len(lengths) if lengths else None}


def _headline(rows: Sequence[Row]) -> Mapping[str, Any]:
    return {"answers": sum(row["n"] for row in rows)}


ANSWER_LENGTHS = Aggregate(TABLE, length_rows, _headline)

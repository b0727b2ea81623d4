"""The most expensive and the slowest turns."""

from collections.abc import Iterator

from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.figure_table import Column, FigureTable
from eval_pipeline.reports.queries import extremes_query

MOST = 20
"""How many such turns a workbook lists; a page lists half as many."""
_EXTREMES = (
    ("Most expensive turns, by tokens", "tokens", "no turn's tokens are known"),
    ("Slowest turns", "latency_ms", "no turn's latency is known"),
)
_COLUMNS = (
    Column("turn", "turn_id", "place"), Column("tokens", "tokens", "tokens"), Column("US dollars", "usd", "usd"),
    Column("latency", "latency_ms", "ms"), Column("attempts", "attempts", "tokens"),
    Column("correct", "correct", "verdict"), Column("complexity", "complexity", "tokens"),
    Column("question", "question", "long"),
)  # fmt: skip


def extremes(evaluation: Evaluation, most: int = MOST) -> Iterator[tuple[FigureTable, str]]:
    """Yields both tables, each with the message if no turn has a value."""
    for title, column, missing in _EXTREMES:
        sql = extremes_query(evaluation.partition, column, most)
        yield FigureTable(title, _COLUMNS, evaluation.query(sql), [sql]), missing

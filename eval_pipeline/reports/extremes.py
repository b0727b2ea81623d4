"""The turns that took the most."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.reports.evaluation import Row

MOST = 20
"""Turns that a workbook lists; a page lists half of them."""
EXTREMES = (
    ("Most expensive turns, by tokens", "tokens", "no turn's tokens are known"),
    ("Slowest turns", "latency_ms", "no turn's latency is known"),
)
"""Title, column of `turn_results`, and what is said where no turn has it."""


def top_turns(results: pa.Table, column: str, most: int = MOST) -> list[Row]:
    """Rows of `turn_results` with the highest values of a column, the highest first."""
    known = results.filter(pc.greater(results[column], 0))  # a turn that nobody answered took nothing
    order: Sequence[tuple[str, str]] = [(column, "descending"), ("turn_id", "ascending"), ("sample", "ascending")]
    rows: list[Row] = known.take(pc.sort_indices(known, sort_keys=order)).slice(0, most).to_pylist()
    return rows

"""The most expensive and the slowest turns."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.reports.evaluation import Row

MOST = 20
"""How many such turns a workbook lists; a page lists half as many."""
EXTREMES = (
    ("Most expensive turns, by tokens", "tokens", "no turn's tokens are known"),
    ("Slowest turns", "latency_ms", "no turn's latency is known"),
)
"""Title, column of `turn_results`, and the message if no turn has a value in it."""
VERDICTS = {True: "yes", False: "no", None: "not scored"}
"""How these lists show `correct`."""


def top_turns(results: pa.Table, column: str, most: int = MOST) -> list[Row]:
    """Returns the rows of `turn_results` with the highest values of a column, highest first."""
    known = results.filter(pc.greater(results[column], 0))  # a turn that nobody answered used nothing
    order: Sequence[tuple[str, str]] = [(column, "descending"), ("turn_id", "ascending"), ("sample", "ascending")]
    rows: list[Row] = known.take(pc.sort_indices(known, sort_keys=order)).slice(0, most).to_pylist()
    return rows

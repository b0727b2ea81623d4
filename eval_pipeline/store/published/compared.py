"""What the store tells of comparisons: evaluations that are not compared yet, and losses that are open."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eval_pipeline.core import shown
from eval_pipeline.store.published.query import run_query

Row = dict[str, Any]
_QUERY = "FROM trends AS t WHERE NOT t.compared ORDER BY t.suite, t.model_version, t.eval_date"
_LOSSES = """
SELECT t.* FROM (
    FROM trends QUALIFY row_number() OVER (PARTITION BY suite, model_version ORDER BY eval_date DESC) = 1
) AS t ANTI JOIN acknowledgements AS k
    ON k.suite = t.suite AND k.model_version = t.model_version AND k.open_loss_date = t.open_loss_date
WHERE t.open_loss_date IS NOT NULL AND NOT t.retired ORDER BY t.suite, t.model_version
"""


def uncompared(store: Path) -> list[Row]:
    """Returns the rows of `trends` whose figures no comparison has seen, as its column `compared` tells.

    Raises:
        StoreError: the store cannot be read, or was made by an earlier version.
    """
    rows: list[Row] = run_query(store, _QUERY).to_pylist()
    return rows


def open_losses(store: Path) -> list[Row]:
    """Returns the newest row of `trends` of each model version in use whose loss is open and not acknowledged.

    Raises:
        StoreError: as for `uncompared`.
    """
    rows: list[Row] = run_query(store, _LOSSES).to_pylist()
    return rows


def loss_text(row: Row) -> str:
    """Returns what is to be told of a row of `open_losses`."""
    points = f"{shown.open_loss(row)} points"
    dates = f"{row['open_loss_date']} against {row['open_loss_against']}"
    return f"{row['suite']} · {row['model_version']}: {points} on {dates}, and nobody has acknowledged it"


def uncompared_text(rows: Sequence[Row]) -> str:
    """Returns what is to be told of rows of `uncompared`; empty if there are none."""
    if not rows:
        return ""
    first, more = rows[0], f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    place = f"{first['suite']} · {first['model_version']} · {first['eval_date']}{more}"
    return f"not compared yet with other dates and model versions: {place}"

"""Evaluations of the store that are not compared with those of other dates and model versions yet."""

from pathlib import Path

from eval_pipeline.core.model import Partition
from eval_pipeline.store.published.query import run_query

_QUERY = "SELECT t.suite, t.model_version, t.eval_date FROM trends AS t WHERE NOT t.compared ORDER BY ALL"


def uncompared(store: Path) -> list[Partition]:
    """Returns the evaluations whose figures no comparison has seen, as the column `compared` of `trends` tells.

    Raises:
        StoreError: the store cannot be read, or was made by an earlier version.
    """
    return [Partition(**row) for row in run_query(store, _QUERY).to_pylist()]

"""Figures on how errors continue through conversations, for several model versions of tracks that have such figures."""

from collections.abc import Mapping
from typing import Any

import pyarrow.compute as pc

from eval_pipeline.core.model import Partition
from eval_pipeline.core.shown import Unit
from eval_pipeline.reports.queries import literal, newest_of, recorded_rows
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.tables import STATISTICS

Row = dict[str, Any]
FIGURES: Mapping[str, str] = {
    "right_after_right": "right after a right turn",
    "right_after_wrong": "right after a wrong turn",
    "inherited_error": "wrong turns that inherit the error",
    "error_propagation": "turns after a wrong one that inherit its error",
    "first_wrong_turn": "first wrong turn of a conversation, from 0",
}
"""Metrics on how errors continue through a conversation, with descriptions; all but the last are shares."""


def unit_of(metric: str) -> Unit:
    """Returns the unit of a metric of `FIGURES`."""
    return "count" if metric == "first_wrong_turn" else "rate"


_COLUMNS = ["metric", "split", "n", "mean", "low", "high"]


def conversation_figures(record: Record, partition: Partition) -> list[Row]:
    """Returns the rows of `statistics` over all turns for the metrics in `FIGURES`, in that order.

    Empty if there are none.
    """
    table = recorded_rows(record, STATISTICS, [RecordKey.of(partition)], _COLUMNS)
    table = table.filter(pc.equal(table["split"], "all"))
    found = {row["metric"]: row for row in table.to_pylist() if row["metric"] in FIGURES and row["n"]}
    place = {"model_version": partition.model_version, "eval_date": partition.eval_date}
    return [place | found[metric] for metric in FIGURES if metric in found]


def figures_query(suite: str) -> str:
    """Returns the query for these rows of each model version's newest evaluation."""
    names = ", ".join(literal(metric) for metric in FIGURES)
    return (
        f"SELECT model_version, eval_date, metric, n, mean, low, high FROM statistics JOIN {newest_of(suite)} "
        f"USING (suite, model_version, eval_date) WHERE split = 'all' AND n > 0 AND metric IN ({names}) "
        f"ORDER BY model_version, list_position([{names}], metric)"
    )

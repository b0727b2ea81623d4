"""Evaluations of a part of a suite that are compared with the last full one of the same model version."""

from collections.abc import Sequence
from typing import Any

from eval_pipeline.core.model import Partition
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.tables import SAMPLED_ESTIMATES

Row = dict[str, Any]


def look_rows_of(record: Record, partition: Partition) -> list[Row]:
    """Returns the rows of `sampled_estimates` of an evaluation; empty unless its cases were drawn."""
    key = RecordKey.of(partition)
    header = record.header(SAMPLED_ESTIMATES, key)
    return record.read(SAMPLED_ESTIMATES, key).to_pylist() if header is not None and header.rows else []


def own_difference(rows: Sequence[Row], model_version: str) -> Row | None:
    """Returns the last look's difference from the model version's own full evaluation; None without one.

    Also None while questions are still to be asked.
    """
    last = max(rows, key=lambda row: (row["look"], row["metric"]), default=None)
    if last is None or last["metric"] != "difference" or last["stopped"] is None:
        return None
    return last if last["baseline"].rpartition(" ")[0] == model_version else None


def newest_part(record: Record, suite: str, model_version: str) -> tuple[Partition, Row] | None:
    """Returns the newest evaluation of a model version if it is such a part, with its difference; else None."""
    dates = [key.eval_date for key in record.partitions(SAMPLED_ESTIMATES, RecordKey(suite, model_version))]
    newest = max((day for day in dates if day is not None), default=None)
    if newest is None:
        return None
    place = Partition(suite, model_version, newest)
    found = own_difference(look_rows_of(record, place), model_version)
    return None if found is None else (place, found)

"""Reads from the record how much of a suite evaluations cover: coverage, and evaluations of a drawn part."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.core.covering.coverage import Coverage, Try
from eval_pipeline.core.covering.left_out import CaseCounts
from eval_pipeline.core.model import Partition
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import COVERAGE, GENERATIONS, RECOVERY_ATTEMPTS, SAMPLED_ESTIMATES

_READ = ("turn_id", "sample", "call_error", "stop_reason", "artefact")


def recorded_coverage(record: Record, partition: Partition) -> Coverage:
    """Returns the row of the table `coverage`.

    All counts are unknown for evaluations made before that table existed.
    """
    return Coverage.from_row(_row(record, partition))


def recorded_cases(record: Record, partition: Partition) -> CaseCounts:
    """Returns how many cases an evaluation covers and why others were left out; unknown for older evaluations."""
    return CaseCounts.from_row(_row(record, partition))


def _row(record: Record, partition: Partition) -> dict[str, Any]:
    key = RecordKey.of(partition)
    return record.read(COVERAGE, key).to_pylist()[0] if record.header(COVERAGE, key) is not None else {}


def tries_of(read: Callable[[Table, Sequence[str]], pa.Table]) -> Iterator[Try]:
    """Yields the attempts of an evaluation in the order in which they were made.

    Args:
        read: returns the given columns of one of its tables.
    """
    for table in (GENERATIONS, RECOVERY_ATTEMPTS):
        found = read(table, _READ)
        columns = (*(found[name] for name in _READ[:3]), *(pc.is_valid(found[name]) for name in _READ[3:]))
        yield from map(Try, *(column.to_pylist() for column in columns))


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

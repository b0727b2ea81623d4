"""Reads the coverage of an evaluation from the record."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.core.covering.coverage import Coverage, Try
from eval_pipeline.core.covering.left_out import CaseCounts
from eval_pipeline.core.model import Partition
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import COVERAGE, GENERATIONS, RECOVERY_ATTEMPTS

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

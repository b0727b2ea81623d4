"""The coverage of an evaluation as the record has it."""

from eval_pipeline.core.coverage import Coverage
from eval_pipeline.core.model import Partition
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.tables import COVERAGE


def recorded_coverage(record: Record, partition: Partition) -> Coverage:
    """What `coverage` says of it; nothing is known of an evaluation that was made before there was such a table."""
    key = RecordKey.of(partition)
    if record.header(COVERAGE, key) is None:
        return Coverage()
    return Coverage.from_row(record.read(COVERAGE, key).to_pylist()[0])

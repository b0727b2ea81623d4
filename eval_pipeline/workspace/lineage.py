"""What a record was made from: the content hashes of the records before it."""

from collections.abc import Iterable

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import Partition
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.schemas import Table


def content_hashes(record: Record, partition: Partition, tables: Iterable[Table]) -> dict[str, str]:
    """Content hash by table name, of the partition or, for tables of the suite, of the suite.

    Raises:
        UsageError: one of them is not in the record.
    """
    hashes = {}
    for table in tables:
        key = RecordKey.of_suite(partition.suite) if table.key == "suite" else RecordKey.of(partition)
        header = record.header(table, key)
        if header is None:
            place = f"{partition.suite}, {partition.model_version}, {partition.eval_date}"
            raise UsageError(f"the record has no {table.name} of {place} yet; materialise what comes before first")
        hashes[table.name] = header.content_hash
    return hashes


def combined_hash(record: Record, partition: Partition, tables: Iterable[Table]) -> str:
    """One hash over all the tables a stage writes: it changes when any of them does."""
    return json_hash(content_hashes(record, partition, tables))

"""Publishing: what the record holds, put into the DuckDB store that people query."""

from contextlib import suppress

from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import Partition
from eval_pipeline.stages.generate import note_later_run
from eval_pipeline.stages.lineage import combined_hash
from eval_pipeline.stages.runs import COMPLETE, FAILED, now, record_run
from eval_pipeline.stages.tables import track_tables
from eval_pipeline.stages.workspace import StageResult, Workspace
from eval_pipeline.store.publish import publish, publish_full
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import COST_PER_CORRECT_ANSWER, RUNS, TURN_RESULTS, all_tables


def publish_partition(workspace: Workspace, partition: Partition, run_id: str) -> StageResult:
    """Closes the run's row in `runs` and publishes whatever the store does not hold yet.

    The row is published with the rest, so it says `complete` before that is so; where it fails, it says that.
    """
    record, key = workspace.record, RecordKey.of(partition)
    cost = record.read(COST_PER_CORRECT_ANSWER, key, ["tokens_total", "usd_total", "turns"]).to_pylist()[0]
    totals = {"tokens": cost["tokens_total"], "usd": cost["usd_total"]}
    # The scored turns are not needed any more, and DuckDB wants the memory.
    workspace.forget()
    note_later_run(workspace, partition, run_id)
    record_run(workspace, partition, run_id, status=COMPLETE, finished_at=now(), **totals)
    # Only what this run made: others may be writing their partitions just now.
    keys = [key, RecordKey(suite=partition.suite), RecordKey(model_version=partition.model_version)]
    try:
        published = publish(record, workspace.home.store, track_tables(), keys)
    except BaseException:
        with suppress(EvalError):  # why it could not be published is what has to be told
            record_run(workspace, partition, run_id, status=FAILED)
        raise
    header = record.header(TURN_RESULTS, key)
    assert header is not None
    facts = {"turns": header.rows, "partitions_replaced": published.partitions_replaced}
    return StageResult(header.rows, _published_hash(workspace, partition), False, facts)


def _published_hash(workspace: Workspace, partition: Partition) -> str:
    """One hash over everything published of the partition but `runs`, which changes with every run."""
    key, record = RecordKey.of(partition), workspace.record
    tables = [source for table in all_tables(track_tables()) for source in table.record_tables()]
    held = [table for table in tables if table.key == "partition" and table != RUNS and record.header(table, key)]
    return combined_hash(record, partition, held)


def publish_all(workspace: Workspace, *, full: bool) -> StageResult:
    """Publishes everything that differs from the record, or builds the store anew."""
    do = publish_full if full else publish
    published = do(workspace.record, workspace.home.store, track_tables())
    return StageResult(published.rows, "", False, {"partitions_replaced": published.partitions_replaced})

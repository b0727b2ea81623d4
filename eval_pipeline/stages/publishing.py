"""Publishing: what the record holds, put into the DuckDB store that people query."""

from collections.abc import Sequence
from contextlib import suppress

from eval_pipeline.chain.wholeness import why_not_whole
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import Json, Partition
from eval_pipeline.stages.attempts.spending import ended_as
from eval_pipeline.stages.generate import note_later_run
from eval_pipeline.store.listing import Refusal
from eval_pipeline.store.publish import Published, publish, publish_full
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import COST_PER_CORRECT_ANSWER, RUNS, TURN_RESULTS, all_tables
from eval_pipeline.workspace.lineage import combined_hash
from eval_pipeline.workspace.progress import SILENT, busy, label_of
from eval_pipeline.workspace.runs import FAILED, now, record_run
from eval_pipeline.workspace.track_tables import further_tables
from eval_pipeline.workspace.workspace import Progress, StageResult, Workspace


def publish_partition(
    workspace: Workspace, partition: Partition, run_id: str, progress: Progress = SILENT
) -> StageResult:
    """Closes the run's row in `runs` and publishes whatever the store does not hold yet.

    The row is published with the rest, so it says `complete` (or `incomplete`) before that is so; where it fails, it
    says that.
    """
    record, key = workspace.record, RecordKey.of(partition)
    cost = record.read(COST_PER_CORRECT_ANSWER, key, ["tokens_total", "usd_total", "turns"]).to_pylist()[0]
    totals = {"tokens": cost["tokens_total"], "usd": cost["usd_total"]}
    # The scored turns are not needed any more, and DuckDB wants the memory.
    workspace.forget()
    note_later_run(workspace, partition, run_id)
    status = ended_as(workspace, partition)
    record_run(workspace, partition, run_id, status=status, finished_at=now(), **totals)
    # Only what this run made: others may be writing their partitions just now.
    keys = [key, RecordKey.of_suite(partition.suite), RecordKey.of_model_version(partition.model_version)]
    try:
        with busy(progress, label_of(partition, "publishing")):
            published = publish(record, workspace.home.store, further_tables(), keys, _gate(workspace))
    except BaseException:
        with suppress(EvalError):  # why it could not be published is what has to be told
            record_run(workspace, partition, run_id, status=FAILED)
        raise
    header = record.header(TURN_RESULTS, key)
    assert header is not None
    facts: dict[str, Json] = {"turns": header.rows, "partitions_replaced": published.partitions_replaced}
    facts |= {"left_out": _sentences(published)} if published.left_out else {}
    return StageResult(header.rows, _published_hash(workspace, partition), False, facts)


def _published_hash(workspace: Workspace, partition: Partition) -> str:
    """One hash over everything published of the partition but `runs`, which changes with every run."""
    key, record = RecordKey.of(partition), workspace.record
    tables = [source for table in all_tables(further_tables()) for source in table.record_tables()]
    held = [table for table in tables if table.key == "partition" and table != RUNS and record.header(table, key)]
    return combined_hash(record, partition, held)


def publish_suite(workspace: Workspace, suite: str) -> Published:
    """Publishes what belongs to a suite as a whole, such as its comparisons."""
    keys = [RecordKey.of_suite(suite)]
    return publish(workspace.record, workspace.home.store, further_tables(), keys, _gate(workspace))


def publish_gone(workspace: Workspace, partitions: Sequence[Partition]) -> Published:
    """Takes partitions out of the store whose files have been removed."""
    keys = [RecordKey.of(partition) for partition in partitions]
    return publish(workspace.record, workspace.home.store, further_tables(), keys, _gate(workspace))


def publish_all(workspace: Workspace, *, full: bool, progress: Progress = SILENT) -> StageResult:
    """Publishes everything that differs from the record, or builds the store anew.

    A partition that is not whole stays as the store has it, and is left out of a store built anew; the fact `left_out`
    has a sentence for each.
    """
    record, store, gate = workspace.record, workspace.home.store, _gate(workspace)
    with busy(progress, "publishing"):
        if full:
            published = publish_full(record, store, further_tables(), gate)
        else:
            published = publish(record, store, further_tables(), None, gate)
    facts = {"partitions_replaced": published.partitions_replaced, "left_out": _sentences(published)}
    return StageResult(published.rows, "", False, facts)


def _gate(workspace: Workspace) -> Refusal:
    """Why a partition must not be published; None where it may."""

    def refuse(key: RecordKey) -> str | None:
        assert key.suite and key.model_version and key.eval_date
        return why_not_whole(workspace, Partition(key.suite, key.model_version, key.eval_date))

    return refuse


def _sentences(published: Published) -> list[str]:
    """What was not published, and why."""
    return [
        f"{key.suite} · {key.model_version} · {key.eval_date} {why}; it is not published until a run has completed it"
        for key, why in published.left_out
    ]

"""Publishing: puts the contents of the record into the DuckDB store that people query."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from eval_pipeline.core.errors import EvalError, StoreError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import Json, Partition
from eval_pipeline.stages.spending import ended_as
from eval_pipeline.store.listing import Files, Refusal, files_of
from eval_pipeline.store.published.publish import publish, publish_full
from eval_pipeline.store.published.publisher import PublishResult
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import COST_PER_CORRECT_ANSWER, MODEL_VERSIONS, STATISTICS, TURN_RESULTS
from eval_pipeline.workspace.asked.planned import note_later_run
from eval_pipeline.workspace.evaluations import id_in_place
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.progress import SILENT, busy
from eval_pipeline.workspace.runs import FAILED, end_run, now, record_run
from eval_pipeline.workspace.tabled.track_tables import further_tables
from eval_pipeline.workspace.workspace import RETIRED, Progress, StageResult, Workspace


@dataclass(frozen=True, slots=True)
class Closed:
    """An evaluation whose run is closed and whose results can be published.

    Attributes:
        keys: what to publish, beginning with the evaluation's own key.
        files: the evaluation's files as they were when the run was closed.
    """

    inputs: Inputs
    keys: tuple[RecordKey, ...]
    files: Files


def close_run(inputs: Inputs) -> Closed:
    """Closes the run's row in `runs`: `complete`, or `incomplete` if the budget was too small."""
    workspace, partition, run_id = inputs.workspace, inputs.place, inputs.run.run_id
    cost = inputs.read(COST_PER_CORRECT_ANSWER, ["tokens_total", "usd_total", "turns"]).to_pylist()[0]
    totals = {"tokens": cost["tokens_total"], "usd": cost["usd_total"]}
    note_later_run(workspace, partition, run_id)
    record_run(workspace, partition, run_id, status=ended_as(inputs), finished_at=now(), **totals)
    return as_closed(inputs)


def as_closed(inputs: Inputs) -> Closed:
    """Returns an evaluation whose run is closed, with its files as they are now."""
    # Only the results of this run, because other runs may be writing theirs.
    keys = keys_of(inputs.workspace, inputs.place)
    return Closed(inputs, keys, files_of(inputs.record, further_tables(), keys[0]))


def keys_of(workspace: Workspace, partition: Partition) -> tuple[RecordKey, ...]:
    """Returns the keys of the tables that an evaluation changes, beginning with its own.

    Others of its date have perhaps become earlier ones, or this one has been one.
    """
    key = RecordKey.of(partition)
    others = workspace.record.partitions(STATISTICS, key.of_date, earlier=True)
    put_back = replace(key, evaluation=id_in_place(workspace, partition))
    shared = (RecordKey.of_suite(partition.suite), RecordKey.of_model_version(partition.model_version))
    return tuple(dict.fromkeys((key, *shared, *others, put_back)))


def publish_partition(inputs: Inputs, held: Sequence[Table], gate: Refusal) -> StageResult:
    """Closes the run and publishes what the store does not hold yet.

    The row in `runs` is set to `complete` (or `incomplete`) before publishing; if that fails, it is set to `failed`.

    Args:
        inputs: the evaluation.
        held: its tables.
        gate: returns why a partition must not be published.
    """
    closed = close_run(inputs)
    try:
        return published_as(inputs, held, publish_together([closed], gate))
    except StoreError:
        mark_failed([closed])
        raise


def published_as(inputs: Inputs, held: Sequence[Table], published: PublishResult) -> StageResult:
    """Returns the result of the stage that publishes an evaluation with these tables."""
    header = inputs.header(TURN_RESULTS)
    assert header is not None
    facts: dict[str, Json] = {"turns": header.rows, "partitions_replaced": published.partitions_replaced}
    facts |= {"left_out": left_out(published)} if published.left_out else {}
    # Aggregates added after the evaluation was made may be missing.
    return StageResult(header.rows, inputs.combined_hash(filter(inputs.header, held)), False, facts)


def publish_together(runs: Sequence[Closed], gate: Refusal) -> PublishResult:
    """Publishes the results of several closed runs at once, because each publishing copies the store.

    An evaluation that another run has changed since its run was closed must pass the gate.

    Args:
        runs: the closed runs.
        gate: returns why a partition must not be published.

    Raises:
        StoreError: publishing failed. The runs are not marked as failed, as the error may concern only one of them.
    """
    first = runs[0].inputs
    record, known = first.record, {closed.keys[0]: closed.files for closed in runs}
    keys = dict.fromkeys(key for closed in runs for key in closed.keys)

    def refuse(key: RecordKey) -> str | None:
        is_unchanged = key in known and files_of(record, further_tables(), key) == known[key]
        return None if is_unchanged else gate(key)

    # Frees cases and scored turns, because DuckDB needs the memory; until now, stages after `published` could use them.
    first.workspace.forget()
    try:
        label = first.label("publishing") if len(runs) == 1 else "publishing"
        with busy(first.progress, label), first.workspace.place.publishing_in_turn():
            return publish(record, first.workspace.home.store, further_tables(), list(keys), refuse, trusted=())
    except BaseException as error:
        if not isinstance(error, StoreError):
            mark_failed(runs)
        raise


def mark_failed(runs: Sequence[Closed]) -> None:
    """Marks runs as failed that were closed and could not be published."""
    for inputs in (closed.inputs for closed in runs):
        with suppress(EvalError):  # the error of publishing is the one to report
            end_run(inputs.workspace, inputs.place, inputs.run.run_id, FAILED)


def publish_suites(suites: Sequence[Inputs], gate: Refusal) -> PublishResult:
    """Publishes the comparisons of several suites at once. Raises StoreError."""
    first = suites[0]
    keys = [*(RecordKey.of_suite(inputs.suite) for inputs in suites), *note_retired(first.workspace)]
    with busy(first.progress, first.label("publishing")), first.workspace.place.publishing_in_turn():
        return publish(first.record, first.workspace.home.store, further_tables(), keys, gate)


def publish_suite(inputs: Inputs, tables: Sequence[Table], gate: Refusal) -> StageResult:
    """Publishes the `tables` of a suite's comparisons."""
    published = publish_suites([inputs], gate)
    headers = [header for table in tables if (header := inputs.header(table))]
    facts: dict[str, Json] = {"partitions_replaced": published.partitions_replaced}
    hashes = json_hash([header.content_hash for header in headers])
    return StageResult(sum(header.rows for header in headers), hashes, False, facts)


def publish_gone(workspace: Workspace, partitions: Sequence[Partition], gate: Refusal) -> PublishResult:
    """Removes partitions from the store whose files have been removed."""
    return publish_keys(workspace, [RecordKey.of(partition) for partition in partitions], gate)


def publish_keys(
    workspace: Workspace, keys: Sequence[RecordKey], gate: Refusal, *, erase: bool = False
) -> PublishResult:
    """Makes the store match the record for these keys; with `erase`, no byte of removed rows remains in the file."""
    with workspace.place.publishing_in_turn():
        return publish(workspace.record, workspace.home.store, further_tables(), keys, gate, erase=erase)


def publish_all(workspace: Workspace, gate: Refusal, *, full: bool, progress: Progress = SILENT) -> StageResult:
    """Publishes everything that differs from the record, or rebuilds the store.

    An inconsistent partition keeps its previous rows, and is missing from a rebuilt store. The fact `left_out` has a
    sentence for each.
    """
    record, store = workspace.record, workspace.home.store
    note_retired(workspace)
    with busy(progress, "publishing"), workspace.place.publishing_in_turn():
        if full:
            published = publish_full(record, store, further_tables(), gate)
        else:
            published = publish(record, store, further_tables(), None, gate)
    facts = {"partitions_replaced": published.partitions_replaced, "left_out": left_out(published)}
    return StageResult(published.rows, "", False, facts)


def left_out(published: PublishResult) -> list[str]:
    """Returns a sentence for each partition that was not published."""
    return [
        f"{key.suite} · {key.model_version} · {key.eval_date} {why}; it is not published until a run has completed it"
        for key, why in published.left_out
    ]


def note_retired(workspace: Workspace) -> list[RecordKey]:
    """Updates in the record whether each model version is retired; returns the keys of those that have changed.

    Raises:
        StoreError: the record cannot be read or written.
    """
    changed = []
    for key in workspace.record.partitions(MODEL_VERSIONS):
        header = workspace.record.header(MODEL_VERSIONS, key)
        assert key.model_version
        retired = workspace.is_retired(key.model_version)
        if header is None or retired == (RETIRED in header.made_from):
            continue
        (row,) = workspace.record.read(MODEL_VERSIONS, key).to_pylist()
        columns = {column.name: [row[column.name]] for column in MODEL_VERSIONS.columns} | {RETIRED: [retired]}
        made_from = {name: text for name, text in header.made_from.items() if name != RETIRED}
        with workspace.record.writer(MODEL_VERSIONS, key, made_from | ({RETIRED: "true"} if retired else {})) as writer:
            writer.write(columns)
        changed.append(key)
    return changed

"""The plan behind a partition's generations: scope, cases, freshness epoch."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Case, Partition
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import CASES, GENERATIONS, TURNS
from eval_pipeline.workspace.asked.scope import FULL, Scope, failed_cases
from eval_pipeline.workspace.evaluations import id_in_place
from eval_pipeline.workspace.runs import BROKEN_OFF, MADE_OF, RUNNING, RunContext, open_run, run_rows
from eval_pipeline.workspace.workspace import Workspace


def planned_scope(workspace: Workspace, partition: Partition) -> str:
    """Returns the label of the scope of the partition's generations. Raises UsageError if there are none."""
    header = workspace.record.header(GENERATIONS, RecordKey.of(partition))
    if header is None:
        raise UsageError(f"{partition.suite} has no generations of {partition.model_version} on {partition.eval_date}")
    return header.made_from["scope"]


def planned_turns(workspace: Workspace, partition: Partition) -> int | None:
    """Returns the planned number of turns times samples of the partition's generations; None if no run is recorded."""
    scope = planned_scope(workspace, partition)
    rows = [
        row
        for row in run_rows(workspace, partition, ["scope", "turns_planned", "started_at"])
        if row["scope"] == scope and row["turns_planned"] is not None
    ]
    return max(rows, key=lambda row: row["started_at"])["turns_planned"] if rows else None


def guard_scope(workspace: Workspace, partition: Partition, scope: Scope) -> None:
    """Raises UsageError if a partial scope would replace a full evaluation."""
    header = workspace.record.header(GENERATIONS, RecordKey.of(partition))
    if header is not None and header.made_from.get("scope") == FULL and not scope.is_full:
        raise UsageError(
            f"{partition.suite} has been evaluated in full for {partition.model_version} on {partition.eval_date}; "
            "a part would replace it: give another --eval-date"
        )


def cases_in_scope(workspace: Workspace, partition: Partition, scope: Scope) -> list[Case]:
    """Returns the cases of a suite that a run with this scope covers."""
    cases = workspace.cases(partition.suite)
    if scope.is_drawn:
        from eval_pipeline.workspace.asked.draws import drawn_cases

        drawn = drawn_cases(workspace.record, partition, scope)
        return [case for case in cases if case.id in drawn]
    failed = failed_cases(workspace.record, partition) if scope.failed else None
    return scope.select(cases, failed)


def planned_cases(workspace: Workspace, partition: Partition) -> list[Case]:
    """Returns the cases for which the partition's generations were made.

    For the scope `failed` they are read from the generations, because other cases may have failed since.
    """
    scope = Scope.from_label(planned_scope(workspace, partition))
    if not scope.failed:
        return cases_in_scope(workspace, partition, scope)
    table = workspace.record.read(GENERATIONS, RecordKey.of(partition), ["case_id"])
    asked = set(table["case_id"].unique().to_pylist())
    return [case for case in workspace.cases(partition.suite) if case.id in asked]


def effective_epoch(workspace: Workspace, partition: Partition, epoch: str) -> str:
    """Returns the epoch of a run: its own, else that of a later unfinished run, else that of the recorded generations.

    So a plain run after a nightly or fresh run of the same date keeps its responses, or continues with those that had
    arrived when it was killed, and does not pay again. A run that failed before any response arrived is ignored.
    """
    if epoch:
        return epoch
    recorded = recorded_epoch(workspace, partition)
    # A batch is paid for when it is submitted, before there is any answer.
    in_batches = workspace.model_version(partition.model_version).batch
    columns = ["status", "epoch", "started_at", "finished_at", "calls", "responses", "journal_hits", "identity"]
    settings = {None, canonical_json(workspace.model_version(partition.model_version).identity())}
    mine = [row for row in run_rows(workspace, partition, columns) if row["identity"] in settings]
    rows = sorted(mine, key=lambda row: row["started_at"])
    for row in reversed(rows):
        if row["status"] == RUNNING or (row["status"] in BROKEN_OFF and (in_batches or _may_have_paid(row))):
            return row["epoch"] or ""
        # A run that only published does not tell which generations are newer.
        if (row["epoch"] or "") == recorded and (row["calls"] or row["journal_hits"]):
            break
    return recorded


def _may_have_paid(row: Mapping[str, Any]) -> bool:
    """Whether a failed run may have left responses in the journal; always possible for a killed one."""
    return row["finished_at"] is None or row["responses"] != 0 or row["journal_hits"] != 0


def recorded_epoch(workspace: Workspace, partition: Partition) -> str:
    """Returns the epoch of the recorded generations; the first epoch (empty) if there are none."""
    header = workspace.record.header(GENERATIONS, RecordKey.of(partition))
    return header.made_from.get("epoch", "") if header else ""


def note_later_run(workspace: Workspace, partition: Partition, run_id: str) -> None:
    """Adds a run that continues from another run's generations to `runs`, with the plan of the partition."""
    if any(row["run_id"] == run_id for row in run_rows(workspace, partition, ["run_id"])):
        return
    cases, turns = planned_size(workspace, partition)
    asked = workspace.record.read(GENERATIONS, RecordKey.of(partition), ["sample"])["sample"]
    samples = 1 + max(asked.unique().to_pylist(), default=0)
    run = RunContext(run_id, recorded_epoch(workspace, partition))
    scope, made_of = planned_scope(workspace, partition), made_of_in_place(workspace, partition)
    open_run(workspace, partition, run, scope, turns * samples, cases, made_of)


def made_of_in_place(workspace: Workspace, partition: Partition) -> dict[str, Any]:
    """Returns the columns of `runs` that say what the evaluation is that the record holds in a partition."""
    own = partition.evaluation or id_in_place(workspace, partition)
    rows = run_rows(workspace, replace(partition, evaluation=own), MADE_OF)
    return {**(rows[-1] if rows else dict.fromkeys(MADE_OF)), "evaluation_id": own}


def planned_size(workspace: Workspace, partition: Partition) -> tuple[int, int]:
    """Returns how many cases and turns the partition's generations were made for; samples are not counted."""
    key = RecordKey.of_suite(partition.suite)
    cases, turns = workspace.record.header(CASES, key), workspace.record.header(TURNS, key)
    if planned_scope(workspace, partition) == FULL and cases is not None and turns is not None:
        return cases.rows, turns.rows
    found = planned_cases(workspace, partition)
    return len(found), sum(len(case.turns) for case in found)


def planned_turn_ids(workspace: Workspace, partition: Partition) -> pa.Array:
    """Returns the ids of the turns that the partition's generations were made for, in the suite's order."""
    if planned_scope(workspace, partition) == FULL:
        return workspace.record.read(TURNS, RecordKey.of_suite(partition.suite), ["turn_id"])[
            "turn_id"
        ].combine_chunks()
    cases = planned_cases(workspace, partition)
    return pa.array([turn.id for case in cases for turn in case.turns], pa.string())

"""What the generations of a partition are made with, or were: scope, cases, freshness epoch."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Case, Partition
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import GENERATIONS
from eval_pipeline.workspace.runs import FAILED, RUNNING, RunContext, open_run, run_rows
from eval_pipeline.workspace.scope import FULL, Scope, failed_cases
from eval_pipeline.workspace.workspace import Workspace


def planned_scope(workspace: Workspace, partition: Partition) -> str:
    """Label of the scope that the partition's generations were made with. Raises UsageError where there are none."""
    header = workspace.record.header(GENERATIONS, RecordKey.of(partition))
    if header is None:
        raise UsageError(f"{partition.suite} has no generations of {partition.model_version} on {partition.eval_date}")
    return header.made_from["scope"]


def planned_turns(workspace: Workspace, partition: Partition) -> int | None:
    """Turns in the scope of the partition's generations, every sample counted; None where no run of it is on record."""
    scope = planned_scope(workspace, partition)
    rows = [
        row
        for row in run_rows(workspace, partition, ["scope", "turns_planned", "started_at"])
        if row["scope"] == scope and row["turns_planned"] is not None
    ]
    return max(rows, key=lambda row: row["started_at"])["turns_planned"] if rows else None


def guard_scope(workspace: Workspace, partition: Partition, scope: Scope) -> None:
    """Refuses to replace a full evaluation by a part of it. Raises UsageError."""
    header = workspace.record.header(GENERATIONS, RecordKey.of(partition))
    if header is not None and header.made_from.get("scope") == FULL and not scope.is_full:
        raise UsageError(
            f"{partition.suite} has been evaluated in full for {partition.model_version} on {partition.eval_date}; "
            "a part would replace it: give another --eval-date"
        )


def cases_in_scope(workspace: Workspace, partition: Partition, scope: Scope) -> list[Case]:
    """The cases of a suite that a run over the scope covers."""
    failed = failed_cases(workspace.record, partition) if scope.failed else None
    return scope.select(workspace.cases(partition.suite), failed)


def planned_cases(workspace: Workspace, partition: Partition) -> list[Case]:
    """The cases that the partition's generations were made for.

    What had failed when they were made cannot be told from what has failed today: there the generations say it.
    """
    scope = Scope.from_label(planned_scope(workspace, partition))
    if not scope.failed:
        return cases_in_scope(workspace, partition, scope)
    table = workspace.record.read(GENERATIONS, RecordKey.of(partition), ["case_id"])
    asked = set(table["case_id"].unique().to_pylist())
    return [case for case in workspace.cases(partition.suite) if case.id in asked]


def effective_epoch(workspace: Workspace, partition: Partition, epoch: str) -> str:
    """The epoch of a run: its own, else that of a later run that did not end, else that of what the partition holds.

    So a plain run after a nightly or fresh one of the same date keeps those responses, or goes on with those that had
    arrived when it was killed, and does not pay again. A run that failed before any had arrived counts for nothing.
    """
    if epoch:
        return epoch
    recorded = recorded_epoch(workspace, partition)
    # A batch is paid for when it is handed in, before there is any answer.
    in_batches = workspace.model_version(partition.model_version).batch
    columns = ["status", "epoch", "started_at", "finished_at", "calls", "responses", "journal_hits"]
    rows = sorted(run_rows(workspace, partition, columns), key=lambda row: row["started_at"])
    for row in reversed(rows):
        if row["status"] == RUNNING or (row["status"] == FAILED and (in_batches or _may_have_paid(row))):
            return row["epoch"] or ""
        # A run that only published says nothing of which generations are newer.
        if (row["epoch"] or "") == recorded and (row["calls"] or row["journal_hits"]):
            break
    return recorded


def _may_have_paid(row: Mapping[str, Any]) -> bool:
    """Whether a run that failed may have left responses in the journal; of a killed one nobody knows."""
    return row["finished_at"] is None or row["responses"] != 0 or row["journal_hits"] != 0


def recorded_epoch(workspace: Workspace, partition: Partition) -> str:
    """The epoch of the generations in the record; the first where there are none."""
    header = workspace.record.header(GENERATIONS, RecordKey.of(partition))
    return header.made_from.get("epoch", "") if header else ""


def note_later_run(workspace: Workspace, partition: Partition, run_id: str) -> None:
    """Puts a run that goes on from generations made by another one into `runs`, with what the partition holds."""
    if any(row["run_id"] == run_id for row in run_rows(workspace, partition, ["run_id"])):
        return
    cases = planned_cases(workspace, partition)
    asked = workspace.record.read(GENERATIONS, RecordKey.of(partition), ["sample"])["sample"]
    samples = 1 + max(asked.unique().to_pylist(), default=0)
    run = RunContext(run_id, recorded_epoch(workspace, partition))
    turns = sum(len(case.turns) for case in cases) * samples
    open_run(workspace, partition, run, planned_scope(workspace, partition), turns, len(cases))

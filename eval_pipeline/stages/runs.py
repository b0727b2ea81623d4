"""The `runs` table: what was run when, over which scope, and what it took; and the lock that runs take turns by."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.model import Partition
from eval_pipeline.providers.calls import Counters
from eval_pipeline.stages.workspace import Progress, Workspace
from eval_pipeline.store.durable import locked
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import RUNS

COMPLETE, FAILED, RUNNING = "complete", "failed", "running"
_PATIENCE = 60.0
"""Seconds to wait for another process that writes a row; it takes a moment."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a stage has to know of the run it is part of.

    Attributes:
        run_id: Dagster's.
        epoch: freshness epoch: part of the journal's key, so that another one asks the model again.
    """

    run_id: str
    epoch: str = ""


def record_run(
    workspace: Workspace, partition: Partition, run_id: str, counts: Counters | None = None, **changes: Any
) -> None:
    """Adds the run to the partition's `runs`, or changes columns of it; `counts` come on top of what it has."""
    key = RecordKey.of(partition)
    with locked(_lock_file(workspace, partition, "runs"), _PATIENCE):
        rows = run_rows(workspace, partition)
        row = next((row for row in rows if row["run_id"] == run_id), None)
        if row is None:
            row = dict.fromkeys(column.name for column in RUNS.columns)
            row |= {"run_id": run_id, "status": RUNNING, "started_at": now()}
            rows.append(row)
        row.update(changes)
        if counts is not None:
            made = {"calls": counts.calls, "journal_hits": counts.journal_hits, "call_errors": counts.failures}
            row.update({name: (row[name] or 0) + count for name, count in made.items()})
        columns = {column.name: [row[column.name] for row in rows] for column in RUNS.columns}
        with workspace.record.writer(RUNS, key, {"runs": str(len(rows))}) as writer:
            writer.write(columns)


def run_rows(workspace: Workspace, partition: Partition, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """The partition's `runs`, in the order in which they were added."""
    key = RecordKey.of(partition)
    if workspace.record.header(RUNS, key) is None:
        return []
    rows: list[dict[str, Any]] = workspace.record.read(RUNS, key, columns).to_pylist()
    return rows


@contextmanager
def partition_lock(workspace: Workspace, partition: Partition, progress: Progress) -> Iterator[None]:
    """Lets one run at a time ask models for a partition and write what they said; the others wait as long as it takes.

    The kernel frees it when the process dies. Not to be taken twice by one thread.
    """
    path = _lock_file(workspace, partition, "asking")
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(path, 0))
        except StoreError:
            place = f"{partition.suite} · {partition.model_version} · {partition.eval_date}"
            label = f"waiting for another run of {place}"
            progress.start(label, 0)
            try:
                stack.enter_context(locked(path, inf))
            finally:
                progress.finish(label)
        yield


def _lock_file(workspace: Workspace, partition: Partition, name: str) -> Path:
    folders = RecordKey.of(partition).folders(RUNS)
    return workspace.home.root.joinpath("locks", *folders, f"{name}.lock")


def now() -> datetime:
    """The present in UTC, without a zone, as the store's TIMESTAMP columns hold it."""
    return datetime.now(UTC).replace(tzinfo=None)

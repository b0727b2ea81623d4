"""The `runs` table: what was run when, over which scope, and what it took."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from eval_pipeline.core.model import Partition
from eval_pipeline.stages.workspace import Workspace
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import RUNS

KEY_COLUMNS = frozenset({"suite", "model_version", "eval_date"})


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a stage has to know of the run it is part of.

    Attributes:
        run_id: Dagster's.
        epoch: freshness epoch: part of the journal's key, so that another one asks the model again.
    """

    run_id: str
    epoch: str = ""


def record_run(workspace: Workspace, partition: Partition, run_id: str, **changes: Any) -> None:
    """Adds the run to the partition's `runs`, or changes columns of it."""
    key = RecordKey.of(partition)
    rows: list[dict[str, Any]] = []
    if workspace.record.header(RUNS, key) is not None:
        rows = workspace.record.read(RUNS, key).to_pylist()
    row = next((row for row in rows if row["run_id"] == run_id), None)
    if row is None:
        row = dict.fromkeys(column.name for column in RUNS.columns)
        row |= {"run_id": run_id, "status": "running", "started_at": now()}
        rows.append(row)
    row.update(changes)
    columns = {column.name: [row[column.name] for row in rows] for column in RUNS.columns}
    with workspace.record.writer(RUNS, key, {"runs": str(len(rows))}) as writer:
        writer.write(columns)


def now() -> datetime:
    """The present in UTC, without a zone, as the store's TIMESTAMP columns hold it."""
    return datetime.now(UTC).replace(tzinfo=None)

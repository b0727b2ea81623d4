"""Work for workers of a test: it sleeps, and notes in a folder when it began and ended."""

import os
import time
from pathlib import Path

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Json
from eval_pipeline.workspace.shards.cluster import Task
from eval_pipeline.workspace.shards.workers import threads


def sleep(task: Task) -> dict[str, Json]:
    """Sleeps for `seconds`, longer the first time for `slow_once`; ends with an error for `fails`."""
    notes, name = Path(str(task["notes"])), str(task["name"])
    first = not list(notes.glob(f"{name}.began.*"))
    (notes / f"{name}.began.{time.time_ns()}").write_text(str(os.getpid()))
    if task.get("fails"):
        raise UsageError(f"{name} fails")
    time.sleep(float(task["slow_once"] if first and "slow_once" in task else task["seconds"]))
    (notes / f"{name}.ended").touch()
    return {"host": "here", "name": name, "pid": os.getpid()}


def with_threads(task: Task) -> dict[str, Json]:
    """What a worker says of itself while it has that many threads."""
    from distributed.worker import get_worker

    state = get_worker().state
    before, state.nthreads = state.nthreads, int(task["threads"])
    try:
        return {"threads": threads()}
    finally:
        state.nthreads = before

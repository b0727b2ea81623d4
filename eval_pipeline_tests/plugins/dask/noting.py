"""For `dask worker --preload`: the worker notes in the file KILL_NOTES which shards it begins and has computed."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from eval_pipeline.chain import shards
from eval_pipeline.store.schemas import Table
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.shards.parts import PartOutputs

NOTES = "KILL_NOTES"
BEGAN, DONE = "began", "done"
_real = shards.open_part


class Note(NamedTuple):
    """What happened to a shard, and when, in seconds of the system's clock."""

    at: float
    what: str
    shard: str


def notes() -> list[Note]:
    """All of them, in order."""
    path = Path(os.environ[NOTES])
    lines = path.read_text().splitlines() if path.exists() else []
    return [Note(float(at), what, shard) for at, what, shard in map(str.split, lines)]


def _note(what: str, shard: str) -> None:
    # One write of a short line in append mode is whole, whenever the process is killed.
    with Path(os.environ[NOTES]).open("ab", buffering=0) as file:
        file.write(f"{time.time()} {what} {shard}\n".encode())


@contextmanager
def _noted(inputs: Inputs, tables: Sequence[Table], path: Path) -> Iterator[PartOutputs]:
    _note(BEGAN, path.stem)
    with _real(inputs, tables, path) as outputs:
        yield outputs
    _note(DONE, path.stem)


def dask_setup(worker: object) -> None:
    shards.open_part = _noted

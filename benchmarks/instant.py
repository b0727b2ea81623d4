"""The command line with one more provider: `instant`, which answers at once from a file.

Run as `EVAL_BENCH_RESPONSES=FILE python -m benchmarks.instant run …`; failed turns are answered alike in recovery.
"""

import json
import os
import sqlite3
from functools import cache
from pathlib import Path
from typing import ClassVar

from eval_pipeline.cli import main
from eval_pipeline.core.model import Json, Response, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers import registry
from eval_pipeline.providers.base import Call, Environment
from eval_pipeline.providers.standins.inprocess import Immediate


@cache
def _responses(path: str) -> dict[str, str]:
    """Read once a process, not once a stage: what a model takes is not what is measured."""
    read: dict[str, str] = json.loads(Path(path).read_text())
    return read


class InFile:
    """Responses that stay in an SQLite file, for suites whose responses would take more memory than the evaluation."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, check_same_thread=False)

    def __getitem__(self, turn: str) -> str:
        (text,) = self._connection.execute("SELECT text FROM responses WHERE turn = ?", (turn,)).fetchone()
        return str(text)


class Instant(Immediate):
    """A model without latency."""

    simulated: ClassVar[bool] = True
    recorded: ClassVar[bool] = False

    def __init__(self, version: ModelVersion, environment: Environment) -> None:
        place = os.environ["EVAL_BENCH_RESPONSES"]
        self._responses = InFile(place) if place.endswith(".sqlite") else _responses(place)

    def request(self, call: Call) -> Json:
        """The whole prompt, as a real model's request has it."""
        return {"messages": [[m.role, m.text] for m in call.prompt.messages], "number": call.number}

    def answer(self, call: Call) -> Response:
        """Answers from the file."""
        return Response(self._responses[call.turn_id], usage=Usage(len(call.prompt.messages) * 100, 60), latency_ms=0.0)


if __name__ == "__main__":
    registry.PROVIDERS["instant"] = "benchmarks.instant:Instant"  # type: ignore[index]
    main()

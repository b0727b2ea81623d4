"""Reads PandasEval and NumpyEval (microsoft/PyCodeGPT): JSON lines of programs to complete, with tests.

A model writes the whole program, and the tests are appended. The first of several canonical solutions is the reference
code. Solutions that fail with current pandas and numpy are detected when the suite is made, listed, and left out.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, Field

from eval_pipeline.core.model import Json
from eval_pipeline.tracks.importing import PlacedCase
from eval_pipeline_plugins.foreign_entries import FOREIGN, checked, json_objects

_NO_FUNCTION = "none"
_QUESTION = "Complete this program:"


class _Task(BaseModel):
    model_config = FOREIGN
    task_id: str = Field(min_length=1)
    prompt: str = Field(min_length=1)
    entry_point: str = Field(min_length=1)
    canonical_solution: tuple[str, ...] = Field(min_length=1)
    test: str = Field(min_length=1)


def read_pandaseval(source: Path, limit: int | None) -> Iterator[dict[str, Json]]:
    """Yields the cases in the suite's file format, in file order. Raises an InputError that names line and field."""
    tasks = checked(_Task, source, json_objects(source), limit)
    for task, place in zip(tasks, tasks.places, strict=True):
        argument = "" if task.entry_point == _NO_FUNCTION else task.entry_point
        turn: dict[str, Json] = {
            "question": f"{_QUESTION}\n```python\n{task.prompt.rstrip()}\n```",
            "code": task.prompt + task.canonical_solution[0],
            "tests": f"{task.test.strip()}\n\ncheck({argument})",
        }
        yield PlacedCase({"id": re.sub(r"\W+", "_", task.task_id).lower(), "tables": [], "turns": [turn]}, *place)

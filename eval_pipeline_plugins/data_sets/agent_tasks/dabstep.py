"""Reads DABstep (adyen/DABstep): questions over one folder of tables and a manual, as tasks in a world of all.

Sources: the data set's `data/tasks/*.jsonl` (task_id, question, guidelines, level, answer), its folder `data/context`,
and its scorer. Answers are judged by our own contract: a number has to agree in the decimals that are asked for, where
that scorer allows one in ten thousand; a list may stand in any order, as there; a text that is almost right is not.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.tracks.importing import PlacedCase
from eval_pipeline_plugins.data_sets.agent_tasks.made_worlds import files_in, make_world
from eval_pipeline_plugins.data_sets.pandas_code.dacode import UnusableTaskError, left_out
from eval_pipeline_plugins.foreign_entries import FOREIGN, checked, json_objects

_WORLD = "dabstep"
_DIFFICULTY = {"easy": 1, "hard": 3}
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


class _Task(BaseModel):
    model_config = FOREIGN

    task_id: str | int
    question: str = Field(min_length=1)
    guidelines: str = ""
    level: str = ""
    answer: str | int | float | None = None


def read_dabstep(source: Path, limit: int | None, given: Sequence[Path], folder: Path) -> Iterator[dict[str, Json]]:
    """Yields the cases in file order, and makes their world in the suite's folder.

    Args:
        source: the tasks, as JSON lines or a JSON list.
        limit: maximum number of tasks.
        given: folders with the files of the world.
        folder: folder of the suite that is made.

    Raises:
        InputError: a line is wrong (the message names line and field), or there are no files.
    """
    tasks = checked(_Task, source, json_objects(source), limit)
    files = {name: path for place in given for name, path in files_in(place).items()}
    if not files:
        raise InputError([Problem(str(given[0]), None, "", "has no files; --files names the folder `context`")])
    make_world(folder, _WORLD, files)
    for task, place in zip(tasks, tasks.places, strict=True):
        with left_out(folder, str(task.task_id)):
            yield PlacedCase(_case(task), *place)


def _case(task: _Task) -> dict[str, Json]:
    answer = task.answer.strip() if isinstance(task.answer, str) else task.answer
    if answer in ("", None):
        raise UnusableTaskError("its answer is empty: it is not public, or to give nothing is right")
    return {
        "id": re.sub(r"\W+", "_", f"dabstep_{task.task_id}"),
        "world": _WORLD,
        "task": f"{task.question.strip()}\n\n{task.guidelines.strip()}".strip(),
        "gold": [{"answer": _expected(answer, task.guidelines)}],
        "difficulty": _DIFFICULTY.get(task.level.lower(), 0),
        "tags": [task.level.lower()] if task.level else [],
    }


def _expected(answer: str | int | float, guidelines: str) -> Json:
    """Returns an answer as what it is: a list where the guidelines ask for one, a number, a text."""
    if isinstance(answer, str) and re.search(r"comma.separated", guidelines) and "Not Applicable" not in answer:
        return [value_of(one.strip()) for one in answer.strip("[]").split(",")]
    return value_of(answer) if isinstance(answer, str) else answer


def value_of(text: str) -> Json:
    """Returns a text as a number, if it is one."""
    found: Json = (float(text) if "." in text else int(text)) if _NUMBER.fullmatch(text) else text
    return found

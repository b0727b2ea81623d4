"""Reads DA-Code (yiyihum/da-code) as tasks in worlds: files of `source` are the world, those of `gold` are expected.

`compare_csv` expects a file, compared as a table in the columns that it names, `compare_text` an answer as JSON; what
these cannot judge is left out, with the cause. The data set has no solutions: a gold writes what is expected.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from eval_pipeline.core.model import Json
from eval_pipeline.tracks.importing import PlacedCase
from eval_pipeline_plugins.data_sets.agent_tasks.made_worlds import files_in, make_world
from eval_pipeline_plugins.data_sets.pandas_code.dacode import (
    DaCodeEvaluation,
    DaCodeTask,
    UnusableTaskError,
    expected_json,
    files_below,
    left_out,
    read_tasks,
)
from eval_pipeline_plugins.foreign_entries import read_text

_DIFFICULTY = {"easy": 1, "medium": 2, "hard": 3}
_MOST_BYTES = 1_000_000


def read_dacode_tasks(
    source: Path, limit: int | None, given: Sequence[Path], folder: Path
) -> Iterator[dict[str, Json]]:
    """Yields the cases in the suite's file format, in file order, and copies their worlds to the suite's folder.

    Args:
        source: the tasks, as JSON lines.
        limit: maximum number of tasks.
        given: the folder with `source`, `gold` and `eval.jsonl`; or several folders that have them together.
        folder: folder of the suite that is made.

    Raises:
        InputError: a line is wrong (the message names line and field), or there is no `eval.jsonl`.
    """
    for task, evaluation, place in read_tasks(source, limit, given, folder):
        with left_out(folder, task.id):
            case = _case(task, evaluation, given)
            make_world(folder, str(case["world"]), _world_files(task, given))
            yield PlacedCase(case, *place)


def _case(task: DaCodeTask, evaluation: DaCodeEvaluation, given: Sequence[Path]) -> dict[str, Json]:
    if len(evaluation.func) != 1:
        raise UnusableTaskError(f"it is judged by several comparisons: {', '.join(evaluation.func)}")
    if evaluation.func[0] == "compare_csv":
        told = _expected_file(task, evaluation, given)
    elif evaluation.func[0] == "compare_text":
        told = {"gold": [{"answer": expected_json(evaluation, task.instruction)["expected"]}]}
    else:
        raise UnusableTaskError(f"{evaluation.func[0]} cannot be judged here")
    name = re.sub(r"\W+", "_", f"dacode_{task.id}")
    tags: list[Json] = [task.type.lower().replace(" ", "_")] if task.type else []
    return {
        "id": name,
        "world": name,
        "task": task.instruction.strip(),
        "difficulty": _DIFFICULTY.get(task.hardness.lower(), 0),
        "tags": tags,
        **told,
    }


def _expected_file(task: DaCodeTask, evaluation: DaCodeEvaluation, given: Sequence[Path]) -> dict[str, Json]:
    gold = files_below(given, "gold", task.id)
    names = [name for result in evaluation.result for name in result.get("file", [])]
    if len(names) != 1 or names[0] not in gold:
        raise UnusableTaskError("expected one file of the gold" if len(names) != 1 else f"the gold has no {names[0]}")
    text = read_text(gold[names[0]])
    rows = list(csv.reader(text.splitlines()))
    if len(text) > _MOST_BYTES or len(rows) < 2 or len({len(row) for row in rows if row}) != 1:
        raise UnusableTaskError(f"the gold's {names[0]} is no table, or too large")
    options: dict[str, Any] = evaluation.options[0] if evaluation.options else {}
    counted = set(options.get("condition_cols") or range(len(rows[0])))
    free: list[Json] = [f"{names[0]}.{column}" for place, column in enumerate(rows[0]) if place not in counted]
    return {
        "gold": [{"write_file": {"path": names[0], "text": text}}, {"answer": "done"}],
        "checks": [{"state": {"free": free}}],
    }


def _world_files(task: DaCodeTask, given: Sequence[Path]) -> dict[str, Path]:
    found = {name: path for place in given for name, path in files_in(place / "source" / task.id).items()}
    if not found:
        raise UnusableTaskError("it has no files")
    return found

"""Reads DA-Code (yiyihum/da-code): tasks whose answer is a file, with the folders `source` and `gold` and `eval.jsonl`.

The tables of a task are its CSV files, and its texts (README, tips, forms to fill in) are a part of the question, since
code in the sandbox reads no files. `compare_csv` expects the gold's table, `compare_text` its JSON, and `compare_image`
bars that are drawn again from `plot.json` and `result.npy`; what these cannot judge is left out, with the cause.
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.ids import file_hash
from eval_pipeline.core.model import Json
from eval_pipeline.tracks.importing import PlacedCase, add_origin, leave_out
from eval_pipeline_plugins.data_sets.pandas_code.dabench import table_names
from eval_pipeline_plugins.foreign_entries import FOREIGN, checked, json_objects, read_text
from eval_pipeline_plugins.tracks.pandas_code.cases.outputs import FIGURE
from eval_pipeline_plugins.tracks.pandas_code.cases.source import FOLDER

_EVALUATIONS = "eval.jsonl"
_TEXTS = frozenset({".md", ".txt", ".yaml", ".yml", ".py", ".csv", ".json"})
_PICTURES = frozenset({".png", ".jpg", ".jpeg", ".svg"})
_FORM = re.compile(r"sample|format|template", re.IGNORECASE)
_MOST_TEXT = 6_000


class DaCodeTask(BaseModel):
    """A task, as a line of the tasks."""

    model_config = FOREIGN
    id: str = Field(min_length=1)
    instruction: str = Field(min_length=1)
    type: str = ""
    hardness: str = ""


class DaCodeEvaluation(BaseModel):
    """How a task is judged, as a line of `eval.jsonl`."""

    model_config = FOREIGN
    id: str = Field(min_length=1)
    func: tuple[str, ...] = Field(min_length=1)
    result: tuple[dict[str, Any], ...] = ()
    options: tuple[dict[str, Any], ...] = ()


class UnusableTaskError(Exception):
    """A task cannot be a case; says why."""


def read_dacode(source: Path, limit: int | None, given: Sequence[Path], folder: Path) -> Iterator[dict[str, Json]]:
    """Yields the cases in the suite's file format, in file order, and copies their tables to the suite's folder.

    Args:
        source: the tasks, as JSON lines.
        limit: maximum number of tasks.
        given: the folder with `source`, `gold` and `eval.jsonl`; or several folders that have them together.
        folder: folder of the suite that is made.

    Raises:
        InputError: a line is wrong (the message names line and field), or there is no `eval.jsonl`.
    """
    (folder / FOLDER).mkdir()
    tables = _Tables(folder)
    for task, evaluation, place in read_tasks(source, limit, given, folder):
        with left_out(folder, task.id):
            yield PlacedCase(_case(task, evaluation, given, tables), *place)


def read_tasks(
    source: Path, limit: int | None, given: Sequence[Path], folder: Path
) -> Iterator[tuple[DaCodeTask, DaCodeEvaluation, tuple[str, int | None]]]:
    """Yields each task with how it is judged and its place; one that has no line in `eval.jsonl` is left out.

    Args and errors as for `read_dacode`.
    """
    tasks = checked(DaCodeTask, source, json_objects(source), limit)
    found = [path for path in (place / _EVALUATIONS for place in given) if path.is_file()]
    if not found:
        raise InputError([Problem(str(given[0]), None, "", f"has no {_EVALUATIONS}; --files names the folder with it")])
    evaluations = {one.id: one for path in found for one in checked(DaCodeEvaluation, path, json_objects(path), None)}
    for task, place in zip(tasks, tasks.places, strict=True):
        if task.id in evaluations:
            yield task, evaluations[task.id], place
        else:
            leave_out(folder, task.id, f"it is not in {_EVALUATIONS}")


@contextmanager
def left_out(folder: Path, name: str) -> Iterator[None]:
    """Notes a task of that name that turns out to be unusable."""
    try:
        yield
    except UnusableTaskError as error:
        leave_out(folder, name, str(error))


class _Tables:
    """The tables of the suite; equal files of several tasks are one."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._names = folder, dict[str, str]()

    def name_of(self, path: Path) -> str:
        """Returns the name of the DataFrame with a file's content, and copies the file if that is new."""
        key = f"{path.stem}/{file_hash(path)}"
        if key not in self._names:
            (plain,) = table_names([path.name]).values()
            free = (plain if number == 1 else f"{plain}_{number}" for number in count(1))
            name = next(name for name in free if name not in self._names.values())
            self._names[key] = name
            copy = self._folder / FOLDER / f"{name}.csv"
            shutil.copyfile(path, copy)
            add_origin(self._folder, copy, path)
        return self._names[key]


def _case(task: DaCodeTask, evaluation: DaCodeEvaluation, given: Sequence[Path], tables: _Tables) -> dict[str, Json]:
    kinds, options = set(evaluation.func), evaluation.options[0] if evaluation.options else {}
    gold = files_below(given, "gold", task.id)
    if len(evaluation.func) != 1:
        raise UnusableTaskError(f"it is judged by several comparisons: {', '.join(evaluation.func)}")
    if kinds == {"compare_csv"}:
        told = _expected_table(evaluation, gold, ordered=not options.get("ignore_order", False))
    elif kinds == {"compare_text"}:
        told = expected_json(evaluation, task.instruction)
    elif kinds == {"compare_image"}:
        told = {"output": FIGURE, "code": _drawing(gold)}
    else:
        raise UnusableTaskError(f"{', '.join(kinds)} cannot be judged here")
    inputs = list(files_below(given, "source", task.id).values())
    texts, given_tables = _texts_and_tables(inputs, str(told["output"]))
    question = "\n\n".join([task.instruction.strip(), *texts])
    case: dict[str, Json] = {
        "id": re.sub(r"\W+", "_", f"dacode_{task.id}"),
        "tables": [tables.name_of(path) for path in given_tables],
        "turns": [{"question": question, **told}],
        "tags": [task.type.lower().replace(" ", "_")] if task.type else [],
    }
    return case | ({"features": {"difficulty": task.hardness}} if task.hardness else {})


def files_below(given: Sequence[Path], part: str, task: str) -> dict[str, Path]:
    """Returns the files of a task by name, in order; `part` is `source` or `gold`."""
    files = (path for place in given if (place / part / task).is_dir() for path in (place / part / task).rglob("*"))
    return {path.name: path for path in sorted(files) if path.is_file()}


def _texts_and_tables(inputs: Sequence[Path], output: str) -> tuple[list[str], list[Path]]:
    """Returns the texts for the question, and the CSV files that are tables; a form that is to be filled in is text."""
    texts, tables = list[str](), list[Path]()
    for path in inputs:
        is_form = path.name == output or _FORM.search(path.name) is not None
        if path.suffix == ".csv" and not is_form:
            tables.append(path)
        elif path.suffix in _TEXTS:
            text = read_text(path).strip()
            shown = text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"
            texts.append(f"The file {path.name}:\n```\n{shown}\n```")
        elif path.suffix not in _PICTURES:
            raise UnusableTaskError(f"its input {path.name} is no table of CSV")
    if not tables:
        raise UnusableTaskError("there is no table among its files")
    return texts, tables


def _expected_table(evaluation: DaCodeEvaluation, gold: Mapping[str, Path], *, ordered: bool) -> dict[str, Json]:
    import pandas as pd

    names = [name for result in evaluation.result for name in result.get("file", [])]
    if len(names) != 1 or names[0] not in gold:
        raise UnusableTaskError("expected one file of the gold" if len(names) != 1 else f"the gold has no {names[0]}")
    try:
        frame = pd.read_csv(gold[names[0]])
    except (ValueError, OSError) as error:
        raise UnusableTaskError(f"the gold's {names[0]} cannot be read: {error}") from error
    if frame.empty or not frame.columns.is_unique:
        raise UnusableTaskError(f"the gold's {names[0]} has no rows, or columns of the same name")
    table = json.loads(frame.to_json(orient="split", double_precision=15))
    columns = zip(*table["data"], strict=True)
    return {
        "output": names[0],
        "expected": {str(name): list(cells) for name, cells in zip(table["columns"], columns, strict=True)},
        "ordered": ordered,
    }


def expected_json(evaluation: DaCodeEvaluation, instruction: str) -> dict[str, Json]:
    """Returns the expected JSON, with names in the capitals in which they are asked for."""
    told = [one for result in evaluation.result for one in result.get("number", [])]
    if len(told) != 1 or not isinstance(told[0], dict):
        raise UnusableTaskError("expected one JSON object as the gold")
    asked = {name.lower(): name for name in re.findall(r'"([^"\n]+)"\s*:', instruction)}
    return {"output": "result.json", "expected": {asked.get(name.lower(), name): one for name, one in told[0].items()}}


def _drawing(gold: Mapping[str, Path]) -> str:
    """Returns code that draws the gold's chart: bars of one or several series."""
    import numpy as np

    if not {"plot.json", "result.npy"} <= gold.keys():
        raise UnusableTaskError("the gold has no plot.json with result.npy")
    about = json.loads(read_text(gold["plot.json"]))
    if about.get("type") != "bar":
        raise UnusableTaskError(f"a chart of type {about.get('type')} cannot be drawn again: its gold has no x values")
    data = np.atleast_2d(np.load(gold["result.npy"], allow_pickle=False)).tolist()
    names, places = about.get("labels") or [], about.get("xtick_labels") or []
    if any(len(row) != len(places) for row in data) or (len(data) > 1 and len(names) != len(data)):
        raise UnusableTaskError("the bars of its gold do not fit its labels")
    series = dict(zip(names if len(names) == len(data) else ["value"], data, strict=True))
    words = {"title": about.get("graph_title"), "xlabel": about.get("x_label"), "ylabel": about.get("y_label")}
    return (
        f"frame = pd.DataFrame({series!r}, index={places!r})\n"
        f"result = frame.plot.bar(legend={bool(names)}, "
        + ", ".join(f"{name}={text or ''!r}" for name, text in words.items())
        + ")"
    )

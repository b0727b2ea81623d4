"""Reads DABench (InfiAgent/InfiAgent): questions as JSON lines, labels in a separate file, tables as CSV.

An answer is a text with `@name[value]` for each name of the label; `closed_answers` describes the scoring. As there is
no reference code, performance is not measured. If a label has a name twice, the last value counts, as in the data set's
own scoring.
"""

import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from keyword import iskeyword
from pathlib import Path

from pydantic import BaseModel, Field

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.tracks.importing import PlacedCase, add_origin
from eval_pipeline_plugins.foreign_entries import FOREIGN, checked, json_objects
from eval_pipeline_plugins.tracks.pandas_code.cases.source import FOLDER, SUFFIXES

_LABELS = ".jsonl"


class _Question(BaseModel):
    model_config = FOREIGN
    id: int
    question: str = Field(min_length=1)
    constraints: str = ""
    format: str = Field(min_length=1)
    file_name: str = Field(min_length=1)
    level: str = ""
    concepts: tuple[str, ...] = ()


class _Label(BaseModel):
    model_config = FOREIGN
    id: int
    common_answers: tuple[tuple[str, str], ...] = Field(min_length=1)


def read_dabench(source: Path, limit: int | None, given: Sequence[Path], folder: Path) -> Iterator[dict[str, Json]]:
    """Yields the cases in the suite's file format, in file order, and copies their tables to the suite's folder.

    Raises:
        InputError: a line is wrong (the message names line and field), or a question has no label or table.
    """
    questions = checked(_Question, source, json_objects(source), limit)
    files = {path.resolve(): path for path in chain.from_iterable(map(_files_below, given))}
    files.pop(source.resolve(), None)
    labels = _labels(files.values())
    tables = defaultdict[str, list[Path]](list)
    for path in files.values():
        if path.suffix in SUFFIXES:
            tables[path.name].append(path)
    problems = [
        Problem(str(source), line, f"{found.id}.{field}", message)
        for found, (_, line) in zip(questions, questions.places, strict=True)
        for field, message in _lacking(found, labels, tables)
    ]
    if problems:
        raise InputError(problems)
    (folder / FOLDER).mkdir()
    names = table_names(found.file_name for found in questions)
    for file_name, name in names.items():
        (table,) = tables[file_name]
        copy = folder / FOLDER / f"{name}{table.suffix}"
        shutil.copyfile(table, copy)
        add_origin(folder, copy, table)
    for found, place in zip(questions, questions.places, strict=True):
        yield PlacedCase(_case(found, names[found.file_name], labels[found.id]), *place)


def table_names(file_names: Iterable[str]) -> dict[str, str]:
    """Returns the names of the DataFrames by file name.

    They are the names of the files with `_` in place of characters that Python names cannot have, and with a number if
    two files would get the same name.
    """
    names: dict[str, str] = {}
    for file_name in dict.fromkeys(file_names):
        plain = re.sub(r"\W+", "_", Path(file_name).stem)
        plain = plain if plain.isidentifier() and not iskeyword(plain) else f"table_{plain}"
        free = (name for name in chain([plain], (f"{plain}_{n}" for n in count(2))) if name not in names.values())
        names[file_name] = next(free)
    return names


def _case(found: _Question, table: str, label: _Label) -> dict[str, Json]:
    form = f"Set `result` to a text in this form:\n{found.format.strip()}"
    question = "\n\n".join(part for part in (found.question.strip(), found.constraints.strip(), form) if part)
    answers: dict[str, Json] = dict(label.common_answers)
    raw: dict[str, Json] = {"id": f"dabench_{found.id:03}", "tables": table}
    raw["turns"] = [{"question": question, "answers": answers}]
    raw["tags"] = [concept.lower().replace(" ", "_") for concept in found.concepts]
    return raw | ({"features": {"difficulty": found.level}} if found.level else {})


def _lacking(
    found: _Question, labels: Mapping[int, _Label], tables: Mapping[str, Sequence[Path]]
) -> Iterator[tuple[str, str]]:
    if found.id not in labels:
        yield "id", "has no label; give the file of labels with --files"
    if found.file_name not in tables:
        yield "file_name", f"there is no table {found.file_name}; give the folder of the tables with --files"
    elif len(tables[found.file_name]) > 1:
        places = ", ".join(map(str, tables[found.file_name]))
        yield "file_name", f"there are several tables {found.file_name} ({places}); give one of them with --files"


def _labels(files: Iterable[Path]) -> dict[int, _Label]:
    found = (checked(_Label, path, json_objects(path), None) for path in files if path.suffix == _LABELS)
    return {label.id: label for label in chain.from_iterable(found)}


def _files_below(path: Path) -> Iterator[Path]:
    """Yields the file itself, or all files of a folder."""
    if path.is_file():
        yield path
    else:
        yield from sorted(below for below in path.rglob("*") if below.is_file())

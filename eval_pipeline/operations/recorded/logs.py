"""Reads other tools' logs as recorded answers."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.reading.arms_length import at_arms_length
from eval_pipeline.core.reading.foreign import lines_of
from eval_pipeline.operations.recorded.entries import Entry, LoggedTask
from eval_pipeline.operations.recorded.forms import ALL_LOGS
from eval_pipeline.operations.recorded.recognising import recognised

LogReader = Callable[[Path], Iterator[Entry]]


def read_log(form: str, source: Path) -> list[Entry]:
    """Returns the answers in a log of a form; see `read_any_log`."""
    return read_any_log(source, form)[1]


def read_any_log(source: Path, form: str | None = None) -> tuple[str, list[Entry]]:
    """Returns the form of a log, which its content tells if it is None, and the answers in it.

    It is read in a child process, as it may crash its parser.

    Raises:
        UsageError: there is no such file.
        InputError: the log does not have that format.
        MissingExtraError: a required package is not installed.
    """
    if not source.is_file() and not (source.is_dir() and (form is None or ALL_LOGS.get(form).folders)):
        raise UsageError(f"no file {source}")
    with TemporaryDirectory() as folder:
        made = Path(folder) / "entries.jsonl"
        told = at_arms_length(_read_there, [form, str(source), str(made)], [source])
        return str(told), entries_of(made)


def reader_of(form: str | None, source: Path) -> tuple[str, Iterator[Entry]]:
    """Returns the form of a log, which its content tells if it is None, and its entries, to be read in this process."""
    form = form or recognised(source)
    reader: LogReader = ALL_LOGS.load(form, ALL_LOGS.get(form).place)
    return form, reader(source)


def _read_there(form: str | None, source: str, made: str) -> str:
    form, entries = reader_of(form, Path(source))
    with Path(made).open("w", encoding="utf-8") as file:
        file.writelines(json_text(asdict(entry)) + "\n" for entry in entries)
    return form


def entries_of(made: Path) -> list[Entry]:
    """Returns the entries that a child process wrote."""
    return [_entry(json.loads(line)) for line in lines_of(made)]


def _entry(told: dict[str, Any]) -> Entry:
    task = told["task"]
    if task is not None:
        task = LoggedTask(**{**task, "expected": tuple(task["expected"]), "tags": tuple(task["tags"])})
    return Entry(**{**told, "conversation": tuple(told["conversation"]), "task": task})

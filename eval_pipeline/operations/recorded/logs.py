"""Reads other tools' logs as recorded answers."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import BadZipFile, ZipFile, is_zipfile

from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.arms_length import at_arms_length
from eval_pipeline.core.reading.entries import read_entries
from eval_pipeline.core.reading.foreign import UnreadableFileError, lines_of
from eval_pipeline.core.reading.json_reading import JsonError, parsed_json
from eval_pipeline.core.reading.users_tables import TABLE_FORMATS
from eval_pipeline.operations.recorded.entries import Entry, LoggedTask
from eval_pipeline.operations.recorded.forms import ALL_LOGS
from eval_pipeline.operations.recorded.mapping import has

ROWS = "rows"
"""The form of files that no tool is known to write."""
_LOOKED_AT = 4096
_TEXT = 9
"""Lowest byte that texts have."""


def recognised(source: Path) -> str:
    """Returns the name of the form of a log, `rows` if no other is recognised.

    Raises:
        InputError: the file is none that a log could be.
    """
    if (name := _by_bytes(source)) is not None:
        return name
    first = head(source)
    for name in ALL_LOGS.names():
        if any(all(has(first, path) for path in paths) for paths in ALL_LOGS.get(name).marks):
            return name
    return ROWS


def _by_bytes(source: Path) -> str | None:
    """Returns the form of a file that is no text, such as messages of protobuf."""
    try:
        path = next(iter(_files(source))) if source.is_dir() else source
        with path.open("rb") as file:
            first = file.read(_LOOKED_AT)
    except (OSError, StopIteration):
        return None
    if not any(byte < _TEXT for byte in first):
        return None
    forms = ((name, ALL_LOGS.get(name).begins) for name in ALL_LOGS.names())
    return next((name for name, begins in forms if begins and re.match(begins, first)), None)


def _files(folder: Path) -> list[Path]:
    """Returns the files of a folder, those that are JSON if there are any."""
    return sorted(folder.glob("*.json")) or sorted(path for path in folder.iterdir() if path.is_file())


def head(source: Path) -> Json:
    """Returns what tells a file: the names in an archive, the columns of a table, else its first object.

    Raises:
        InputError: the file cannot be read, or is none of these.
    """
    if source.is_dir():
        files = _files(source)
        return head(files[0]) if files else {}
    try:
        if is_zipfile(source) and source.suffix.lower() not in TABLE_FORMATS:
            with ZipFile(source) as packed:
                return dict.fromkeys(packed.namelist())
        if source.suffix.lower() not in {*TABLE_FORMATS, ".json"}:
            found = _first_line(source)
            if found is not None:
                return found
    except (OSError, BadZipFile, UnreadableFileError) as error:
        raise InputError([Problem(str(source), None, "", f"cannot be read: {error}")]) from error
    entry = next(iter(read_entries(source, str(source), (), else_lines=True)), None)
    if entry is None:
        raise InputError([Problem(str(source), None, "", "is empty")])
    if isinstance(entry, Problem):
        raise InputError([entry])
    return {**dict.fromkeys(entry.columns), **entry.raw} if isinstance(entry.raw, Mapping) else {}


def _first_line(source: Path) -> Json:
    """Returns the object on the first line of JSON Lines; None if the file is none."""
    for line in islice((line for line in lines_of(source) if line.strip()), 1):
        try:
            found = parsed_json(line.decode(), finite=False)
        except (JsonError, UnicodeDecodeError):
            return None
        return found if isinstance(found, dict) else None
    return None


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

"""Tells which tool wrote a log, by its content."""

import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from zipfile import BadZipFile, ZipFile, is_zipfile

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.entries import read_entries
from eval_pipeline.core.reading.foreign import UnreadableFileError, lines_of
from eval_pipeline.core.reading.json_reading import JsonError, parsed_json
from eval_pipeline.core.reading.users_tables import TABLE_FORMATS
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

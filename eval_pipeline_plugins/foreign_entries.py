"""Reads the entries of a foreign data set and validates each; NaN in it stands for what is missing."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading import foreign
from eval_pipeline.core.reading.complaints import complaints, dotted, told_value
from eval_pipeline.core.reading.json_reading import JsonError, NotJsonError, parsed_json

FOREIGN = ConfigDict(extra="ignore", frozen=True)
Entry = TypeVar("Entry", bound=BaseModel)


def read_text(source: Path) -> str:
    """Returns the text of a file without a byte order mark. Raises InputError if it cannot be read."""
    try:
        return foreign.read_text(source)
    except IsADirectoryError as error:
        raise InputError([Problem(str(source), None, "", "is a folder; a file is expected")]) from error
    except OSError as error:
        raise InputError(
            [Problem(str(source), None, "", f"cannot be read as UTF-8 text: {foreign.why_unread(error)}")]
        ) from error


def read_json(source: Path) -> Json:
    """Parses a JSON file. Raises InputError with the line if it does not parse."""
    try:
        return parsed_json(read_text(source), finite=False)
    except JsonError as error:
        what = "is not JSON: " if isinstance(error, NotJsonError) else ""
        raise InputError([Problem(str(source), error.line, "", f"{what}{error}")]) from error


def json_objects(source: Path) -> Iterator[tuple[str, int | None, Json]]:
    """Yields the entries of a JSON list or JSON Lines file (packed or not), each with a description and line or None.

    Raises:
        InputError: the file cannot be read, does not parse, or is not a list.
    """
    if source.name.endswith((".jsonl", ".ndjson", ".jsonl.gz")):
        try:
            for number, line in enumerate(foreign.lines_of(source), start=1):
                if line.strip():
                    yield "", number, _parsed(line, source, number)
        except OSError as error:
            raise InputError(
                [Problem(str(source), None, "", f"cannot be read: {foreign.why_unread(error)}")]
            ) from error
        return
    found = read_json(source)
    if not isinstance(found, list):
        raise InputError([Problem(str(source), None, "", f"expected a list of questions, found {told_value(found)}")])
    yield from ((str(index), None, entry) for index, entry in enumerate(found))


def _parsed(line: bytes, source: Path, number: int) -> Json:
    try:
        return parsed_json(line.decode(), finite=False)
    except ValueError as error:
        raise InputError([Problem(str(source), number, "", f"not a JSON object on one line: {error}")]) from error


class ForeignEntries(list[Entry]):
    """Entries of a file, in its order.

    Attributes:
        places: for each entry, the path of it in the file, e.g. `dev.3`, and its line; either may be unknown.
    """

    def __init__(self) -> None:
        super().__init__()
        self.places: list[tuple[str, int | None]] = []


def checked(
    model: type[Entry], source: Path, entries: Iterable[tuple[str, int | None, Json]], limit: int | None
) -> ForeignEntries[Entry]:
    """Returns the first `limit` entries as instances of the model.

    Raises:
        InputError: lists every wrong entry and field, or says that there is no entry.
    """
    found = ForeignEntries[Entry]()
    problems: list[Problem] = []
    for count, (place, line, raw) in enumerate(entries):
        if count == limit:
            break
        try:
            found.append(model.model_validate(raw))
            found.places.append((place, line))
        except ValidationError as error:
            top = (place,) if place else ()
            problems += [
                Problem(str(source), line, dotted((*top, *location)), message)
                for location, message in complaints(error, model)
            ]
    if problems:
        raise InputError(problems)
    if not found:
        raise InputError([Problem(str(source), None, "", "has no questions")])
    return found


def without_empty(raw: Mapping[str, Json]) -> dict[str, Json]:
    """Returns a case without empty fields."""
    return {name: value for name, value in raw.items() if value not in ("", [], {})}

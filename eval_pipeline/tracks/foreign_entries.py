"""Reading the entries of a foreign data set, each checked against its form."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from eval_pipeline.core import foreign
from eval_pipeline.core.complaints import complaints, dotted
from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json

FOREIGN = ConfigDict(extra="ignore", frozen=True)
Entry = TypeVar("Entry", bound=BaseModel)


def read_text(source: Path) -> str:
    """The text of a file, without a byte order mark. Raises InputError where it cannot be read."""
    try:
        return foreign.read_text(source, "utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Problem(str(source), None, "", f"cannot be read as UTF-8 text: {error}")]) from error


def read_json(source: Path) -> Json:
    """What a JSON file holds. Raises InputError with the line where it does not parse."""
    try:
        found: Json = json.loads(read_text(source))
    except json.JSONDecodeError as error:
        raise InputError([Problem(str(source), error.lineno, "", f"is not JSON: {error.msg}")]) from error
    except RecursionError as error:
        raise InputError([Problem(str(source), None, "", "is nested too deeply")]) from error
    return found


def json_objects(source: Path) -> Iterator[tuple[str, int | None, Json]]:
    """The entries of a JSON list, or of JSON lines, each with its place and line (lines are known of the latter only).

    Raises:
        InputError: the file cannot be read, does not parse, or is no list.
    """
    if source.suffix == ".jsonl":
        try:
            for number, line in enumerate(foreign.lines_of(source), start=1):
                if line.strip():
                    yield "", number, _parsed(line, source, number)
        except OSError as error:
            raise InputError([Problem(str(source), None, "", f"cannot be read: {error}")]) from error
        return
    found = read_json(source)
    if not isinstance(found, list):
        raise InputError([Problem(str(source), None, "", f"expected a list of questions, found {_kind(found)}")])
    yield from ((str(index), None, entry) for index, entry in enumerate(found))


def _parsed(line: bytes, source: Path, number: int) -> Json:
    try:
        found: Json = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError([Problem(str(source), number, "", f"not a JSON object on one line: {error}")]) from error
    return found


def checked(
    model: type[Entry], source: Path, entries: Iterable[tuple[str, int | None, Json]], limit: int | None
) -> list[Entry]:
    """The first `limit` entries as instances of the model.

    Raises:
        InputError: with every entry and field that is wrong, or because there is no entry.
    """
    found: list[Entry] = []
    problems: list[Problem] = []
    for count, (place, line, raw) in enumerate(entries):
        if count == limit:
            break
        try:
            found.append(model.model_validate(raw))
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
    """A case without the fields that say nothing."""
    return {name: value for name, value in raw.items() if value not in ("", [], {})}


def _kind(value: Json) -> str:
    return {dict: "an object", str: "a string", type(None): "null"}.get(type(value), type(value).__name__)

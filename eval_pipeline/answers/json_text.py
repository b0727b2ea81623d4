"""Finds JSON in a model's response: alone, in a Markdown fence, or surrounded by prose. Used by every track."""

import json
import re
from collections.abc import Callable
from itertools import islice

from pydantic_core import from_json

from eval_pipeline.core.model import ErrorClass, Json


class ArtefactError(Exception):
    """A response does not contain an artefact in the track's form."""

    def __init__(self, error_class: ErrorClass, message: str) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.message = message


MAX_CHARS = 200_000
_MAX_SCANNED = 2 * MAX_CHARS
"""Limit on the characters scanned over all starting points, so that a text full of brackets does not take long."""
_MAX_STARTS = 2_000
_MAX_BARE = 100
_START = re.compile(r"[\[{]")
_COMMA_TOO_MANY = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|,(?=\s*[}\]])', re.DOTALL)
"""Strings, which are left alone, and commas before a closing bracket, which models write as in Python."""
_decoder = json.JSONDecoder(strict=False)
"""Accepts line breaks within strings, since models write SQL and code like that."""


def find_json(text: str, wanted: Callable[[Json], bool], what: str, forms: str, most: int = MAX_CHARS) -> Json:
    """Returns the last wanted JSON value in a text, because a model that corrects itself means the last one.

    A value inside another wanted value does not count.

    Args:
        text: the response, unchanged.
        wanted: whether a value has the answer form.
        what: the wanted thing with its article, for messages, e.g. `a plan`.
        forms: the answer forms, for messages.
        most: maximum length of a response in characters.

    Raises:
        ArtefactError: `other_error` for an empty text, `syntax_error` if there is no JSON or it does not parse,
            `value_error` if no value found is wanted.
    """
    text = text.strip()
    if not text:
        raise ArtefactError(ErrorClass.OTHER, "the response is empty")
    if len(text) > most:
        message = f"the response has {len(text)} characters, at most {most} are read"
        raise ArtefactError(ErrorClass.VALUE, message)
    if text[0] in "{[":
        try:
            value = from_json(text)
        except ValueError:
            pass  # the search below finds it, or reports what is wrong
        else:
            if wanted(value):
                return value
    found, problem, some_json = _scan(text, wanted)
    found = found or _repaired(text, wanted)
    if found:
        return found[-1][0]
    # a broken value at the very start was intended as the answer, even if something inside it parses
    meant_broken = problem is not None and text[0] in "{["
    if (some_json and not meant_broken) or (problem is None and _is_bare_json(text)):
        raise ArtefactError(ErrorClass.VALUE, f"the JSON is not {what}; expected {forms}")
    raise ArtefactError(ErrorClass.SYNTAX, problem or f"the response holds no JSON; expected {forms}")


def lenient_json(text: str, wanted: Callable[[Json], bool]) -> list[tuple[Json, int, int]]:
    """Returns the wanted JSON values in a text with their positions, in order; none if they cannot be read."""
    try:
        return _scan(text, wanted)[0] or _repaired(text, wanted)
    except ArtefactError:
        return []


def _repaired(text: str, wanted: Callable[[Json], bool]) -> list[tuple[Json, int, int]]:
    start = _START.search(text)
    at = start.start() if start else len(text)  # a quotation mark in prose before it begins no string
    repaired = text[:at] + _COMMA_TOO_MANY.sub(_without_comma, text[at:])
    return _scan(repaired, wanted)[0] if repaired != text else []


def _without_comma(match: re.Match[str]) -> str:
    return match[0] if match[0][0] == '"' else " "


def _scan(text: str, wanted: Callable[[Json], bool]) -> tuple[list[tuple[Json, int, int]], str | None, bool]:
    """Returns the wanted values with their positions, the first parse error, and whether anything parsed."""
    found: list[tuple[Json, int, int]] = []
    problem: str | None = None
    some_json = False
    scanned = looked_at = 0
    for start in islice(_START.finditer(text), _MAX_STARTS):
        position = start.start()
        if position < looked_at:
            continue
        try:
            value, end = _decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            problem = problem or f"the JSON does not parse: {error.msg} at character {error.pos}"
            end = error.pos
        except RecursionError:
            raise ArtefactError(ErrorClass.SYNTAX, "the JSON is nested too deeply") from None
        except ValueError:  # an integer with thousands of digits
            raise ArtefactError(ErrorClass.VALUE, "the JSON holds a number with too many digits") from None
        else:
            some_json = True
            if wanted(value):
                found.append((value, position, end))
                looked_at = end
        scanned += end - position
        if scanned > _MAX_SCANNED:
            break
    return found, problem, some_json


def _is_bare_json(text: str) -> bool:
    """Whether the whole text is a JSON number, string or literal: valid JSON, but not an answer."""
    if len(text) > _MAX_BARE:
        return False
    try:
        json.loads(text)
    except ValueError:
        return False
    return True

"""Reads JSON so that nothing of it is lost without a word, and finds the lines of what is in it.

Python's own parser keeps the last of a key's values, and reads NaN, Infinity and 1e400 as numbers that no file holds.
"""

import json
import re
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, NamedTuple, NoReturn

from eval_pipeline.core.ids import json_text, without_surrogates
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.complaints import told_value

_SURE_DEPTH = 100
"""Texts with no more brackets than this are not nested too deeply for the code that writes them."""
_HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
"""How JSON writes half of a surrogate pair; whole pairs match, too."""
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_SPACE = re.compile(r"[ \t\n\r]*")


class JsonError(ValueError):
    """A text is not JSON, or would lose something when it is read. The message has no place.

    Attributes:
        line: the line of what is wrong, from 1; None if it is not known.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class NotJsonError(JsonError):
    """A text is not JSON; the message says where in its line it stops being that."""


class JsonItem(NamedTuple):
    """A value with the offset in the text at which it begins, and the line of that."""

    value: Json
    start: int
    line: int


class _LossError(ValueError):
    """The parser met what it would lose; `_lost` finds out where."""


def parsed_json(text: str, *, finite: bool = True) -> Json:
    """Parses JSON; halves of surrogate pairs, as in a text cut inside an emoji, become U+FFFD.

    No file and no store can hold them, so they are replaced here, before anything is made of them.

    Args:
        text: one value.
        finite: whether NaN, Infinity and numbers such as 1e400 are refused; other programs write them for what is
            missing.

    Raises:
        JsonError: the text is not JSON, an object has a key twice, or a number is not finite.
    """
    found = next(_items(text, _STRICT if finite else _UNIQUE, listed=False)).value
    return without_surrogates(found) if _HALF.search(text) else found


def json_items(text: str, *, listed: bool = True) -> Iterator[JsonItem]:
    """Yields the items of a list in a text, or the objects that follow each other; nothing if the text is empty.

    With `listed=False`, the text has one value of any kind. Halves of surrogate pairs stay, so that who reads the items
    can name their fields.

    Raises:
        JsonError: as for `parsed_json`.
    """
    if text.strip():
        yield from _items(text, _STRICT, listed=listed)


def lost_in_json(value: Any, place: tuple[int | str, ...] = ()) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """Yields what JSON cannot hold of a value that YAML or JSON gave: its place, and a sentence."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from lost_in_json(inner, (*place, name))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from lost_in_json(inner, (*place, index))
    elif isinstance(value, float) and not isfinite(value):
        yield place, f"expected a finite number, found {told_value(value)}"
    elif isinstance(value, str) and without_surrogates(value) != value:
        yield (
            place,
            f"expected a text that UTF-8 can hold, without halves of surrogate pairs, found {told_value(value)}",
        )


def json_line(text: str, item: JsonItem, location: Sequence[int | str]) -> int:
    """Returns the line of a field within an item of a text, or of its closest existing parent."""
    best, depth = item.start, 0
    for place in _places(text, item.start):
        if depth < len(place.path) <= len(location) and place.path == tuple(location[: len(place.path)]):
            best, depth = place.offset, len(place.path)
            if depth == len(location):
                break
    return item.line + text.count("\n", item.start, best)


def _items(text: str, decoder: json.JSONDecoder, *, listed: bool) -> Iterator[JsonItem]:
    """Yields the value of a text; if `listed`, each item of a list, or each of the objects that follow each other."""
    at = _after_space(text, 0)
    is_list = listed and text.startswith("[", at)
    next_begins = "," if is_list else "{" if listed else "\0"
    line, counted = 1, 0
    more = True
    if is_list:
        at = _after_space(text, at + 1)
        more = not text.startswith("]", at)
    while more:
        value, end = _decoded(text, at, decoder)
        line, counted = line + text.count("\n", counted, at), at
        yield JsonItem(value, at, line)
        at = _after_space(text, end)
        more = text.startswith(next_begins, at)
        if more and is_list:
            at = _after_space(text, at + 1)
    if is_list:
        if not text.startswith("]", at):
            raise _not_json(json.JSONDecodeError("Expecting ',' delimiter", text, at))
        at = _after_space(text, at + 1)
    if at < len(text):
        raise _not_json(json.JSONDecodeError("Extra data", text, at))


def _decoded(text: str, at: int, decoder: json.JSONDecoder) -> tuple[Json, int]:
    try:
        value, end = decoder.raw_decode(text, at)
        if text.count("[", at, end) + text.count("{", at, end) > _SURE_DEPTH:
            json_text(value)
    except json.JSONDecodeError as error:
        raise _not_json(error) from error
    except _LossError as error:
        raise _lost(text, at) from error
    except RecursionError as error:
        raise JsonError("is nested too deeply") from error
    except ValueError as error:  # a whole number of more digits than Python parses, or values nested too deeply
        told = "is nested too deeply" if "digits" not in str(error) else "has a whole number of too many digits"
        raise JsonError(told) from error
    return value, end


def _not_json(error: json.JSONDecodeError) -> NotJsonError:
    return NotJsonError(f"{error.msg} at column {error.colno}", error.lineno)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _LossError
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise _LossError
    return number


def _refuse(text: str) -> NoReturn:
    raise _LossError(text)


_UNIQUE = json.JSONDecoder(object_pairs_hook=_unique)
_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse)


class _Place(NamedTuple):
    """Where a key, or a value, of a JSON text begins; `path` leads to the value."""

    offset: int
    path: tuple[int | str, ...]
    is_key: bool
    piece: str


def _places(text: str, start: int) -> Iterator[_Place]:
    """Yields each key and value of the one that begins at an offset, in the order of the text."""
    open_: list[int | str | None] = []  # for each open list the index of its item; for an object the key, None before
    for found in _TOKEN.finditer(text, start):
        piece, offset = found[0], found.start()
        if piece in ("}", "]"):
            open_.pop()
        elif piece == ",":
            open_[-1] = open_[-1] + 1 if isinstance(open_[-1], int) else None
        elif piece != ":":
            is_key = bool(open_) and open_[-1] is None
            if is_key:
                open_[-1] = json.loads(piece)
            yield _Place(offset, tuple(part for part in open_ if part is not None), is_key, piece)
            if piece in ("{", "["):
                open_.append(None if piece == "{" else 0)
        if not open_:
            return


def _lost(text: str, start: int) -> JsonError:
    """Returns the error for the first key given twice, or number that is not finite."""
    keys: dict[tuple[int | str, ...], int] = {}
    for place in _places(text, start):
        line = text.count("\n", 0, place.offset) + 1
        if place.is_key and place.path in keys:
            first = keys[place.path]
            before = "" if first == line else f", first in line {first}"
            return JsonError(f"the key '{str(place.path[-1])[:60]}' is given twice{before}", line)
        if place.is_key:
            keys[place.path] = line
        elif _is_lost(place.piece):
            told = "is no number that JSON has; expected a finite one, or null for what is missing"
            at = f"'{'.'.join(map(str, place.path))}': " if place.path else ""
            return JsonError(f"{at}{place.piece[:60]} {told}", line)
    raise AssertionError("the parser found what is not there")


def _is_lost(piece: str) -> bool:
    try:
        return piece[0] not in '"{[' and not isfinite(float(piece))
    except ValueError:  # true, false, null
        return False

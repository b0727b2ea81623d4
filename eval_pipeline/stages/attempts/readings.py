"""Finds settings under which unreadable answers could be read, by trying them on the answers."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from eval_pipeline.core.model import Json
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.tracks.base import ArtefactError, Track
from eval_pipeline.tracks.registry import all_tracks

Read = Callable[[str], list[str]]
"""Converts a response to what it may have been meant as."""

_TRIED = 10
"""Number of answers on which another reading is tried."""
_ENOUGH = 0.8
"""Share of them that must then be readable."""
_PROSE = "This text has no form at all."
_FIELD = re.compile(r'"(\w+)":')
_NAMES = ("answer", "result", "response", "output", "data", "content", "text", "message", "completion", "body")
_PATHS = [(name,) for name in _NAMES] + [(a, b) for a in _NAMES for b in _NAMES if a != b]
"""Paths at which applications and gateways usually put an answer."""


def another_reading(track: Track, version: ModelVersion, unreadable: Sequence[tuple[str, str]]) -> str | None:
    """Returns the setting under which the answers could be read; None if no known one helps.

    Args:
        track: the suite's track.
        version: the model version that was asked.
        unreadable: answers, each with the parser's message, which names the expected fields.
    """
    tried = unreadable[:_TRIED]
    fields = list(dict.fromkeys(name for _, message in tried for name in _FIELD.findall(message)))
    for named, read in _readings(version, fields):
        good = sum(_reads(track, text, read) for text, _ in tried)
        if good >= _ENOUGH * len(tried):
            return f"{named}: {good} of {len(tried)} answers can be read then"
    return None


def another_track(track: Track, answers: Sequence[str]) -> str | None:
    """Returns a sentence if the answers are in the form of another track, else None."""
    tried = answers[:_TRIED]
    for other in all_tracks():
        if other.name == track.name or _reads(other, _PROSE, _as_it_is):  # what reads anything tells nothing
            continue
        if sum(_reads(other, text, _as_it_is) for text in tried) >= _ENOUGH * len(tried):
            return (
                f"these are answers in the form of the track '{other.name}', and the suite is of '{track.name}': "
                "look at the prompt that is used, and at what the address serves"
            )
    return None


def json_of(text: str) -> Json:
    """Parses a text as JSON; returns None if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _readings(version: ModelVersion, fields: Sequence[str]) -> Iterator[tuple[str, Read]]:
    application, wrapped = version.provider == "http", str(version.options.get("answer_field") or "")
    if application:
        now = f" instead of '{wrapped}'" if wrapped else ""
        for field in fields:
            yield f"set options.answer_field to '{field}'{now}", partial(_wrapped, field, wrapped)
    if wrapped:
        yield "leave options.answer_field out", partial(_unwrapped, wrapped)
    where = "set options.answer_path to" if application else "the endpoint wraps the answer, which is at"
    for path in _PATHS:
        yield f"{where} {'.'.join(('$', *path))}", partial(_below, path)
    yield "the answer is JSON within a JSON text: have it encoded once", _decoded


def _reads(track: Track, text: str, read: Read) -> bool:
    for candidate in read(text):
        try:
            track.parse(candidate, recorded=False)
        except ArtefactError:
            continue
        return True
    return False


def _as_it_is(text: str) -> list[str]:
    return [text]


def _wrapped(field: str, wrapped: str, text: str) -> list[str]:
    """Returns candidates with the answer as the value of a field: as text, and as the JSON that it contains."""
    (inner,) = _unwrapped(wrapped, text)
    told = json_of(inner)
    return [json.dumps({field: value}) for value in ([inner] if told is None else [inner, told])]


def _unwrapped(wrapped: str, text: str) -> list[str]:
    told = json_of(text)
    inner = told.get(wrapped) if isinstance(told, dict) else None
    return [text if inner is None else _text(inner)]


def _below(path: Sequence[str], text: str) -> list[str]:
    told = json_of(text)
    for name in path:
        told = told.get(name) if isinstance(told, dict) else None
    return [] if told is None else [_text(told)]


def _decoded(text: str) -> list[str]:
    told = json_of(text)
    return [told] if isinstance(told, str) else []


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)

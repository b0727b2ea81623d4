"""Reads what logs write as question, answer, score and moment, whatever their form."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.json_reading import parsed_json

_SAID = ("content", "text", "answer", "output", "response", "completion", "result")
_ASKED = ("question", "input", "query", "prompt", "text", "content", "user_input", "message", "request")
_RIGHT = {"c": True, "correct": True, "pass": True, "passed": True, "yes": True, "true": True, "i": False}
_RIGHT |= {"incorrect": False, "fail": False, "failed": False, "no": False, "false": False}


def question_text(value: Json) -> str:
    """Returns a question as text: of messages the last one of the user, or all with their roles if there are several.

    An object with one text that is named like a question is that text; any other becomes JSON.
    """
    value = opened(value)
    if isinstance(value, Mapping) and isinstance(value.get("messages"), list):
        value = value["messages"]
    if isinstance(value, list) and value and all(isinstance(one, Mapping) and "role" in one for one in value):
        asked = [(str(one["role"]), said_text(one.get("content"))) for one in value]
        of_user = [text for role, text in asked if role in {"user", "human"}]
        kept = [(role, text) for role, text in asked if text and role not in {"system", "developer"}]
        return of_user[0] if len(kept) == len(of_user) == 1 else "\n\n".join(f"[{role}]\n{text}" for role, text in kept)
    if isinstance(value, Mapping):
        named = [value[name] for name in _ASKED if isinstance(value.get(name), str)]
        if len(named) == 1 or len(value) == 1:
            return said_text(named[0] if named else next(iter(value.values())))
    return said_text(value)


def prompt_text(value: Json) -> str:
    """Returns all messages of a prompt with their roles, or a prompt that is text."""
    if isinstance(value, list) and all(isinstance(one, Mapping) and "role" in one for one in value):
        return "\n\n".join(f"[{one['role']}]\n{said_text(one.get('content'))}" for one in value)
    return said_text(value)


def said_text(value: Json) -> str:
    """Returns an answer as text: the content of a message or of its parts, and of other values the JSON."""
    value = opened(value)
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        parts = [one.get("text") if one.get("type") in {None, "text", "output_text"} else "" for one in value]
        if all(isinstance(part, str) for part in parts) and any(parts):
            return "".join(str(part) for part in parts)
        if "content" in value[-1]:
            return said_text(value[-1]["content"])
    if isinstance(value, Mapping):
        if isinstance(choices := value.get("choices"), list) and choices and isinstance(choices[0], Mapping):
            return said_text(choices[0].get("message", choices[0].get("text")))
        if "role" in value and "content" in value:
            return said_text(value["content"])
        if len(value) == 1 and next(iter(value)) in _SAID:
            return said_text(next(iter(value.values())))
    return canonical_json(value)


def opened(value: Json) -> Json:
    """Returns the value of a text that is the JSON of an object or a list, as tables have it; else the value."""
    if isinstance(value, str) and value[:1] in {"{", "["} and value.rstrip()[-1:] in {"}", "]"}:
        try:
            return parsed_json(value)
        except ValueError:
            return value
    return value


def expected_answers(value: Json) -> tuple[Json, ...]:
    """Returns the right answers: each of a list of texts or numbers, else the value itself; none if it is empty."""
    value = opened(value)
    if value is None or value in ("", [], {}):
        return ()
    if isinstance(value, list) and all(isinstance(one, str | int | float) for one in value):
        return tuple(value)
    if isinstance(value, Mapping) and len(value) == 1 and not isinstance(only := next(iter(value.values())), Mapping):
        return expected_answers(only)
    return (value,)


def is_right(value: Json) -> bool | None:
    """Returns a verdict: of true and false, of 1 and 0, of `C` and `I` and like words; None of anything else."""
    if isinstance(value, str):
        return _RIGHT.get(value.strip().lower())
    return value == 1 if isinstance(value, bool | int | float) and value in (0, 1) else None


def verdict_of(scores: Mapping[str, Json]) -> bool | None:
    """Returns the verdict of those scores that are one: several say it only where they agree."""
    told = {is_right(value) for value in scores.values()} - {None}
    return told.pop() if len(told) == 1 else None


def day_of(moment: Json) -> str | None:
    """Returns the day of a moment in ISO form or in seconds, milliseconds or nanoseconds of Unix."""
    if isinstance(moment, str) and moment[:4].isdecimal() and moment[4:5] == "-":
        return moment[:10]
    if isinstance(moment, int | float) and not isinstance(moment, bool) and moment > 0:
        while moment > 1e11:
            moment = moment / 1000
        return datetime.fromtimestamp(moment, UTC).date().isoformat()
    return None


def told_only(given: Mapping[str, Any]) -> dict[str, Json]:
    """Returns the fields that are known."""
    return {name: value for name, value in given.items() if value is not None and value != {}}

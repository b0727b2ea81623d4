"""What somebody's own program has answered, by what it wrote and how it ended."""

import json
from math import isfinite

from eval_pipeline.core.model import Json, ToolCall
from eval_pipeline.core.system.programs import ProgramEnded
from eval_pipeline.tracks.capabilities import Concluded
from eval_pipeline_plugins.tracks.agent.trajectory import ANSWER

_GAVE_UP, _LAST_WORDS = "gave_up", 500
_TOO_MUCH = {"memory": "it took more memory than is allowed", "threads": "it started more processes than are allowed"}


def finished(ended: ProgramEnded, seconds: float) -> Concluded:
    """Returns how a program has ended that could take so many seconds.

    Its answer is what it wrote to the file of its answer, as JSON or text; else, if it ended with status 0, the last
    line of its standard output that is not empty: text, or an object of JSON with `answer`.
    """
    if ended.stopped == "wall":
        return Concluded(None, "seconds", f"it took more than the {seconds:g} s that are allowed")
    if ended.stopped is not None:
        return Concluded(None, _GAVE_UP, _TOO_MUCH.get(ended.stopped, f"it was stopped: {ended.stopped}"))
    written, lines = (ended.answer or "").strip(), ended.output.split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if written:
        return Concluded(_call(_read(written)))
    if last and ended.status == 0:
        found = _read(last)
        return Concluded(_call(found if isinstance(found, dict) and ANSWER in found else last))
    said = " ".join(ended.errors.split())[-_LAST_WORDS:]
    told = f"it ended with status {ended.status} and without an answer"
    return Concluded(None, _GAVE_UP, f"{told}: {said}" if said else told)


def _read(text: str) -> Json:
    """Returns what a text is as JSON, or else the text."""
    try:
        found: Json = json.loads(text, parse_float=_number, parse_constant=_number)
    except (ValueError, RecursionError):
        return text
    return found


def _number(text: str) -> float:
    if not isfinite(found := float(text)):
        raise ValueError(f"{text} is no number of JSON")
    return found


def _call(found: Json) -> ToolCall:
    answer = found[ANSWER] if isinstance(found, dict) and ANSWER in found else found
    return ToolCall("", ANSWER, {ANSWER: answer})

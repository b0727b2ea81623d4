"""Formats texts for readers, and says of a turn what is said wherever one is shown; `core.shown` formats figures."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from eval_pipeline.core import shown
from eval_pipeline.core.model import Message
from eval_pipeline.core.shown import UNKNOWN
from eval_pipeline.reports.queries import NOT_SCORED, RIGHT, WRONG

NO_ROLE = "prompt"
"""In the place of the role of a text that is no message."""
_START = re.compile(r"(?:\A|\n\n)\[(system|user|assistant)\]\n")


def short(text: str | None, most: int = 300) -> str:
    """Returns a text for a table cell: on one line, cut if it is long."""
    if text is None:
        return UNKNOWN
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[:most]}…"


def place(turn_id: str, sample: int = 0) -> str:
    """Returns the place of a turn in its suite: `<case>#<index>`, followed by `~<sample>` from sample 1 on."""
    return turn_id.partition("/")[2] + (f"~{sample}" if sample else "")


def verdict(correct: bool | None) -> str:
    """Returns the verdict on a turn in a word."""
    return NOT_SCORED if correct is None else RIGHT if correct else WRONG


def spent(turn: Mapping[str, Any], attempts: int) -> Iterator[str]:
    """Yields what a turn took, from its row of `turn_results` or in a trace, and how complex it is, as far as known."""
    yield f"{shown.count(turn['tokens'])} tokens"
    if turn["latency_ms"] is not None:
        yield shown.milliseconds(turn["latency_ms"])
    if turn["usd"] is not None:
        yield shown.dollars(turn["usd"])
    yield shown.counted(attempts, "attempt", "attempts")
    if turn["complexity"] is not None:
        yield f"complexity {turn['complexity']}"


def messages_of(prompt: str) -> Iterator[Message]:
    """Splits a prompt into its messages; the inverse of `Prompt.text`.

    A prompt that does not begin with a line such as `[user]` is one message. One that itself contains such a line after
    an empty line is split wrongly.
    """
    starts = list(_START.finditer(prompt))
    if not starts or starts[0].start(1) != 1:
        yield Message(NO_ROLE, prompt)
        return
    for start, after in zip_longest(starts, starts[1:]):
        yield Message(start[1], prompt[start.end() : after.start() if after else None])


def shown_json(value: Any) -> str:
    """Formats a value; an object becomes lines of `name: value` without its empty entries."""
    if not isinstance(value, Mapping):
        return _json_text(value)
    told = ((name, found) for name, found in value.items() if found not in (None, "", [], {}))
    return "\n".join(f"{name}: {_json_text(found)}" for name, found in told)


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

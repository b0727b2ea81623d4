"""The section that shows the prompt as a conversation."""

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.model import Message
from eval_pipeline.core.provenance import PROVENANCE, UNKNOWN
from eval_pipeline.view.part import Part
from eval_pipeline.view.published import Row
from eval_pipeline.view.turn_seen import TurnSeen

_START = re.compile(r"(?:\A|\n\n)\[(system|user|assistant)\]\n")


def messages_of(prompt: str) -> Iterator[Message]:
    """Splits a prompt into its messages; the inverse of `Prompt.text`.

    A message that itself contains a line such as `[user]` after an empty line is split wrongly.
    """
    starts = list(_START.finditer(prompt))
    if not starts or starts[0].start():
        yield Message("prompt", prompt[: starts[0].start()] if starts else prompt)
    for start, after in zip_longest(starts, starts[1:]):
        yield Message(start[1], prompt[start.end() : after.start() if after else None])


def prompt_is_known(attempt: Row, *, recorded: bool) -> bool:
    """Returns whether the stored prompt is what the model was really asked.

    For recorded answers it may be unknown; an older import holds the prompt that eval-pipeline would have sent.
    """
    if not recorded:
        return True
    return attempt["prompt"] != UNKNOWN and PROVENANCE in (parse_json(attempt["metadata"] or "null") or {})


def _values(seen: TurnSeen) -> Mapping[str, Any] | None:
    found = [
        (
            attempt["number"],
            list(messages_of(attempt["prompt"])) if prompt_is_known(attempt, recorded=seen.recorded) else None,
        )
        for attempt in seen.attempts
        if attempt["prompt"] is not None
    ]
    return {"prompts": found} if found else None


PART = Part("conversation", "What the model was asked", "parts/conversation.html.j2", _values, exported=True)

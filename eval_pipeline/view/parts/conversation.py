"""The prompt as the conversation that it is."""

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
    """The messages of a prompt, as `Prompt.text` has put them together.

    A message that itself holds a line such as `[user]` after an empty one is told apart by nobody.
    """
    starts = list(_START.finditer(prompt))
    if not starts or starts[0].start():
        yield Message("prompt", prompt[: starts[0].start()] if starts else prompt)
    for start, after in zip_longest(starts, starts[1:]):
        yield Message(start[1], prompt[start.end() : after.start() if after else None])


def prompt_is_known(seen: TurnSeen, attempt: Row) -> bool:
    """Whether the model was asked this.

    Of recorded answers nobody may have told; an older import has the prompt that we would have sent.
    """
    if not seen.recorded:
        return True
    return attempt["prompt"] != UNKNOWN and PROVENANCE in (parse_json(attempt["metadata"] or "null") or {})


def _values(seen: TurnSeen) -> Mapping[str, Any] | None:
    found = [
        (attempt["number"], list(messages_of(attempt["prompt"])) if prompt_is_known(seen, attempt) else None)
        for attempt in seen.attempts
        if attempt["prompt"] is not None
    ]
    return {"prompts": found} if found else None


PART = Part("conversation", "What the model was asked", "parts/conversation.html.j2", _values, exported=True)

"""The sections with the prompt: as a conversation, and how it differs from that of the first side."""

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, NamedTuple

from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.model import Message, Partition
from eval_pipeline.core.provenance import PROVENANCE, UNKNOWN
from eval_pipeline.view.comparing.sides import sides_of
from eval_pipeline.view.drawing import Passage, passage
from eval_pipeline.view.page import NotFoundError
from eval_pipeline.view.published import Row
from eval_pipeline.view.turn.seen import PageSection, TurnSeen, first_prompt, is_recorded

_START = re.compile(r"(?:\A|\n\n)\[(system|user|assistant)\]\n")
_MOST = 100_000
"""The most characters of a message that are compared."""
_MOST_WORDS = 1_000


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


def _conversation(seen: TurnSeen) -> Mapping[str, Any] | None:
    found = [
        (
            attempt["number"],
            list(messages_of(attempt["prompt"])) if prompt_is_known(attempt, recorded=seen.recorded) else None,
        )
        for attempt in seen.attempts
        if attempt["prompt"] is not None
    ]
    return {"prompts": found} if found else None


class Changed(NamedTuple):
    """A message that differs.

    Attributes:
        role: its role, or that of the message in its place in the other prompt.
        part: where it differs.
    """

    role: str
    part: Passage


def changed_messages(before: str, after: str) -> Iterator[Changed]:
    """Yields the messages in which two prompts differ, each compared with the one in its place."""
    nothing = Message("", "")
    for one, other in zip_longest(messages_of(before), messages_of(after), fillvalue=nothing):
        if found := passage(one.text[:_MOST], other.text[:_MOST], _MOST_WORDS):
            roles = dict.fromkeys(role for role in (one.role, other.role) if role)
            yield Changed(" → ".join(roles), found)


def _values(seen: TurnSeen) -> Mapping[str, Any] | None:
    """Returns the differences; None if the turn was not opened from a comparison, or is the first evaluation's."""
    if not seen.visit.argument("versions"):
        return None
    try:
        first = sides_of(seen.visit)[0].partition
    except NotFoundError:  # an evaluation of an old address is gone
        return None
    if first == seen.evaluation.partition:
        return None
    ours = next(iter(seen.attempts), None)
    theirs = first_prompt(seen.look, first, seen.result)
    known = _is_known(ours, seen.recorded) and _is_known(theirs, is_recorded(seen.look, first.model_version))
    changed = list(changed_messages(theirs["prompt"], ours["prompt"])) if known and ours and theirs else []
    return {"first": _name(first), "known": known, "changed": changed}


def _is_known(attempt: Row | None, recorded: bool) -> bool:
    return attempt is not None and attempt["prompt"] is not None and prompt_is_known(attempt, recorded=recorded)


def _name(partition: Partition) -> str:
    return f"{partition.model_version}, {partition.eval_date}"


CONVERSATION = PageSection(
    "conversation", "What the model was asked", "parts/conversation.html.j2", _conversation, exported=True
)
DIFFERENCES = PageSection("prompt", "The prompt against that of A", "parts/prompt_differences.html.j2", _values)

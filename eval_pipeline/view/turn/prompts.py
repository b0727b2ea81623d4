"""The sections with the prompt: as a conversation, and how it differs from that of the first side."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.model import Message
from eval_pipeline.core.provenance import PROVENANCE, UNKNOWN
from eval_pipeline.reports.shown import NO_ROLE, messages_of
from eval_pipeline.view.comparing.sides import sides_of
from eval_pipeline.view.drawing import Passage, passage
from eval_pipeline.view.evaluation import model_version_of
from eval_pipeline.view.page import NotFoundError
from eval_pipeline.view.published import Row, StoreView
from eval_pipeline.view.turn.seen import PageSection, TurnSeen, first_prompt

_MOST = 100_000
"""The most characters of a message that are compared."""
_MOST_WORDS = 1_000
TASK = "task"
"""The role of what a program of somebody's own was told."""


def asked_in(attempt: Row | None, look: StoreView) -> list[Message] | None:
    """Returns the messages that an attempt was asked with; None if there is none, or they are not known.

    Of a program of somebody's own it is the task alone that it was told, where what it asked its models is not known.
    Of recorded answers the prompt may be unknown; an older import holds the one that eval-pipeline would have sent.
    """
    if attempt is None or attempt["prompt"] is None:
        return None
    if model_version_of(look, attempt["model_version"]).get("recorded"):
        told = parse_json(attempt["metadata"] or "null") or {}
        if attempt["prompt"] == UNKNOWN or PROVENANCE not in told:
            return None
        return list(messages_of(attempt["prompt"]))
    found = list(messages_of(attempt["prompt"]))
    # Every prompt of ours has roles; a program of somebody's own writes its prompts itself.
    return [Message(TASK, one.text) if one.role == NO_ROLE else one for one in found]


def _conversation(seen: TurnSeen) -> Mapping[str, Any] | None:
    asked = [attempt for attempt in seen.attempts if attempt["prompt"] is not None]
    return {"prompts": [(attempt["number"], asked_in(attempt, seen.look)) for attempt in asked]} if asked else None


class Changed(NamedTuple):
    """A message that differs.

    Attributes:
        role: its role, or that of the message in its place in the other prompt.
        part: where it differs.
    """

    role: str
    part: Passage


def changed_messages(before: Sequence[Message], after: Sequence[Message]) -> Iterator[Changed]:
    """Yields the messages in which two prompts differ, each compared with the one in its place."""
    nothing = Message("", "")
    for one, other in zip_longest(before, after, fillvalue=nothing):
        if found := passage(one.text[:_MOST], other.text[:_MOST], _MOST_WORDS):
            roles = dict.fromkeys(role for role in (one.role, other.role) if role)
            yield Changed(" → ".join(roles), found)


def _differences(seen: TurnSeen) -> Mapping[str, Any] | None:
    """Returns the differences; None if the turn was not opened from a comparison, or is the first evaluation's."""
    if not seen.visit.argument("versions"):
        return None
    try:
        first = sides_of(seen.visit)[0].partition
    except NotFoundError:  # an evaluation of an old address is gone
        return None
    if first == seen.evaluation.partition:
        return None
    ours = asked_in(next(iter(seen.attempts), None), seen.look)
    theirs = asked_in(first_prompt(seen.look, first, seen.result), seen.look)
    changed = None if ours is None or theirs is None else list(changed_messages(theirs, ours))
    untold = any(message.role == TASK for message in (*(ours or ()), *(theirs or ())))
    return {"first": f"{first.model_version}, {first.eval_date}", "changed": changed, "untold": untold}


CONVERSATION = PageSection(
    "conversation", "What the model was asked", "parts/conversation.html.j2", _conversation, exported=True
)
DIFFERENCES = PageSection("prompt", "The prompt against that of A", "parts/prompt_differences.html.j2", _differences)

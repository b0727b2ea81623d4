"""What a look at some attempts tells about how the model is asked: which can be read, and what they have in common."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from eval_pipeline.core.coverage import NOT_ASKED
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Attempt, CallErrorKind, Failed
from eval_pipeline.core.values import value
from eval_pipeline.tracks.base import Track

What = Literal["ran", "failed", "unreadable", "call_error"]
_DIFFERS = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\d+")
_MOST = 160


@value
class Seen:
    """One attempt.

    Attributes:
        what: it `ran`; it could be read and `failed` to run; it was `unreadable`; or the call gave no answer.
        kind: of the call error, or the error class; empty where it ran.
        message: of the error; empty where it ran.
        text: the response; empty where there is none.
        same: equal for attempts that went wrong in the same way, or that gave the same answer.
        answered: there is a response, whatever is in it.
    """

    turn_id: str
    what: What
    kind: str
    message: str
    text: str
    same: str
    answered: bool

    @property
    def readable(self) -> bool:
        """Whether the response had the answer form of the track."""
        return self.what in {"ran", "failed"}


def seen_of(track: Track, attempt: Attempt) -> Seen:
    """What an attempt shows."""
    failure, outcome = attempt.call_failure, attempt.outcome
    text = attempt.response.text if attempt.response else ""
    if failure is not None:
        return seen_call_error(attempt.turn_id, failure.kind.value, failure.message, text, attempt.response is not None)
    if isinstance(outcome, Failed):
        what: What = "unreadable" if attempt.artefact is None else "failed"
        return seen_error(attempt.turn_id, what, outcome.error_class.value, outcome.message, text)
    answer = canonical_json(track.artefact_json(attempt.artefact))
    return Seen(attempt.turn_id, "ran", "", "", text, f"answer {answer}", True)


def seen_call_error(turn_id: str, kind: str, message: str, text: str, answered: bool) -> Seen:
    """A call that gave no answer: all of one kind are the same."""
    return Seen(turn_id, "call_error", kind, message, text, f"call error {kind}", answered)


def seen_error(turn_id: str, what: What, kind: str, message: str, text: str) -> Seen:
    """A response that cannot be read or run: the same are those of one class, with the same words around names."""
    return Seen(turn_id, what, kind, message, text, f"{what} {kind} {_DIFFERS.sub('…', message)[:_MOST]}", True)


def seen_in_rows(rows: Iterable[Mapping[str, Any]]) -> list[Seen]:
    """The attempts of the record that could not be read, of rows with these columns of `generations`."""
    found = []
    for row in rows:
        text, message = row["response"] or "", row["error_message"] or ""
        if row["call_error"] in NOT_ASKED or (row["artefact"] is not None and not row["call_error"]):
            continue
        if row["call_error"]:
            answered = row["response"] is not None
            found.append(seen_call_error(row["turn_id"], row["call_error"], message, text, answered))
        else:
            found.append(seen_error(row["turn_id"], "unreadable", row["error_class"] or "", message, text))
    return found


SEEN_COLUMNS = ("turn_id", "response", "artefact", "call_error", "error_class", "error_message")
"""What `seen_in_rows` takes."""


def counted(seen: Sequence[Seen]) -> str:
    """How often what went wrong, the most frequent first: `12 × max_tokens, 3 × value_error`."""
    kinds = Counter(one.kind for one in seen if one.kind)
    return ", ".join(f"{count} × {kind}" for kind, count in kinds.most_common(3))


def shown(text: str, most: int = 200) -> str:
    """The beginning of a text, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def said_by_endpoint(one: Seen) -> bool:
    """Whether all that can be shown of an attempt is why the endpoint gave nothing: no word of a response."""
    return one.what == "call_error" and not one.answered and one.kind != CallErrorKind.BAD_RESPONSE


def example(one: Seen) -> str:
    """One attempt, in a few words: what was answered, or why nothing was."""
    told = shown(one.text) if one.text.strip() else ""
    if one.what == "call_error":
        return f"to {one.turn_id} the call gave {one.kind} ({shown(one.message)})" + (f": {told}" if told else "")
    if one.what == "ran":
        return f"to {one.turn_id} the answer is {told or 'empty'}"
    return f"to {one.turn_id} the answer is {told or 'empty'} ({shown(one.message)})"

"""Classifies attempts: which could be read, and which went wrong in the same way."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from eval_pipeline.core.covering.coverage import NOT_ASKED, Place
from eval_pipeline.core.ids import canonical_json, parse_json
from eval_pipeline.core.model import Attempt, CallErrorKind, Failed, Json
from eval_pipeline.core.system.programs import CRASHED
from eval_pipeline.core.values import value
from eval_pipeline.tracks.base import Track

What = Literal["ran", "failed", "unreadable", "crashed", "call_error"]
_DIFFERS = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\d+")
_MOST = 160


@value
class SeenAttempt:
    """The classification of one attempt.

    Attributes:
        what: `ran`; `failed` (parsed, but execution failed); `unreadable` (not parsed); `crashed` (the user's own
            program failed); or `call_error`.
        kind: kind of the call error, or the error class; empty if it ran.
        message: the error message; empty if it ran.
        text: the response; empty if there is none.
        same: a key that is equal for attempts that failed in the same way or gave the same answer.
        answered: whether there is a response, whatever it contains.
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


def seen_of(track: Track, attempt: Attempt) -> SeenAttempt:
    """Classifies an attempt."""
    failure, outcome = attempt.call_failure, attempt.outcome
    text = attempt.response.text if attempt.response else ""
    if failure is not None:
        return seen_call_error(attempt.turn_id, failure.kind.value, failure.message, text, attempt.response is not None)
    if isinstance(outcome, Failed):
        what: What = "unreadable" if attempt.artefact is None else "failed"
        return seen_error(attempt.turn_id, what, outcome.error_class.value, outcome.message, text)
    artefact = track.artefact_json(attempt.artefact)
    if attempt.response is not None and attempt.response.stop_reason == CRASHED and not _has_changed(artefact):
        return seen_crash(attempt.turn_id, artefact)
    answer = canonical_json(artefact)
    return SeenAttempt(attempt.turn_id, "ran", "", "", text, f"answer {answer}", True)


def seen_call_error(turn_id: str, kind: str, message: str, text: str, answered: bool) -> SeenAttempt:
    """Classifies a call without an answer; all with the same kind of error count as the same."""
    return SeenAttempt(turn_id, "call_error", kind, message, text, f"call error {kind}", answered)


def seen_error(turn_id: str, what: What, kind: str, message: str, text: str) -> SeenAttempt:
    """Classifies a response that cannot be parsed or run.

    Messages that differ only in names and numbers are the same.
    """
    return SeenAttempt(turn_id, what, kind, message, text, f"{what} {kind} {_DIFFERS.sub('…', message)[:_MOST]}", True)


def seen_crash(turn_id: str, artefact: Json) -> SeenAttempt:
    """Classifies an attempt whose program failed, given its trajectory; it has no answer."""
    why = artefact.get("why") if isinstance(artefact, dict) else None
    return seen_error(turn_id, CRASHED, CRASHED, str(why or "its program failed"), "")


def _has_changed(artefact: Json) -> bool:
    """Whether a program has changed something, which may be all that was asked for."""
    return isinstance(artefact, dict) and bool(artefact.get("end_state"))


def seen_in_rows(rows: Iterable[Mapping[str, Any]], crashed: Collection[Place] = ()) -> list[SeenAttempt]:
    """Classifies the unreadable attempts of the record, given rows of `generations` with these columns.

    `crashed` has the turns and samples at which the program failed.
    """
    found = []
    for row in rows:
        text, message = row["response"] or "", row["error_message"] or ""
        if (row["turn_id"], row["sample"]) in crashed:
            found.append(seen_crash(row["turn_id"], parse_json(row["artefact"])))
            continue
        if row["call_error"] in NOT_ASKED or (row["artefact"] is not None and not row["call_error"]):
            continue
        if row["call_error"]:
            answered = row["response"] is not None
            found.append(seen_call_error(row["turn_id"], row["call_error"], message, text, answered))
        else:
            found.append(seen_error(row["turn_id"], "unreadable", row["error_class"] or "", message, text))
    return found


SEEN_COLUMNS = ("turn_id", "sample", "response", "artefact", "call_error", "error_class", "error_message")
"""The columns that `seen_in_rows` needs."""


def counted(seen: Sequence[SeenAttempt]) -> str:
    """Returns counts of what went wrong, most frequent first: `12 × max_tokens, 3 × value_error`."""
    kinds = Counter(one.kind for one in seen if one.kind)
    return ", ".join(f"{count} × {kind}" for kind, count in kinds.most_common(3))


def shown(text: str, most: int = 200) -> str:
    """Returns the beginning of a text, in one line."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def said_by_endpoint(one: SeenAttempt) -> bool:
    """Whether an attempt contains nothing but the endpoint's error, so that it shows no text of a response."""
    return one.what == "call_error" and not one.answered and one.kind != CallErrorKind.BAD_RESPONSE


def example(one: SeenAttempt) -> str:
    """Describes one attempt in a few words: the answer, or why there is none."""
    told = shown(one.text) if one.text.strip() else ""
    if one.what == "call_error":
        return f"to {one.turn_id} the call gave {one.kind} ({shown(one.message)})" + (f": {told}" if told else "")
    if one.what == "ran":
        return f"to {one.turn_id} the answer is {told or 'empty'}"
    if one.what == "crashed":
        return f"at {one.turn_id} the program failed: {shown(one.message)}"
    return f"to {one.turn_id} the answer is {told or 'empty'} ({shown(one.message)})"

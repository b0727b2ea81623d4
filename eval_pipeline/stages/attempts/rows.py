"""Converts attempts to rows of the record, and back."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

import pyarrow.compute as pc

from eval_pipeline.core.ids import json_text, parse_json
from eval_pipeline.core.model import (
    CALL_ERROR,
    SERVED_FINGERPRINT,
    SERVED_MODEL,
    Attempt,
    CallErrorKind,
    CallFailure,
    Case,
    ErrorClass,
    Failed,
    Outcome,
    Ran,
    Response,
    Turn,
    Usage,
)
from eval_pipeline.core.values import value
from eval_pipeline.stages.scoring.metric_runner import is_right
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import GENERATIONS, RECOVERY_ATTEMPTS
from eval_pipeline.tracks.abilities import gather_all, nearness
from eval_pipeline.tracks.base import Track, ValidationRow
from eval_pipeline.workspace.inputs import Inputs


@value
class Placed:
    """An attempt to be recorded; `usd` is its cost, None if unknown.

    Attributes:
        validation: None: the answer was not read.
    """

    case_id: str
    turn_index: int
    attempt: Attempt
    usd: float | None
    reasoning: str
    validation: ValidationRow | None


_OF_ATTEMPT = {name: attrgetter(name) for name in ("turn_id", "sample", "number", "prompt_hash")}
_OF_RESPONSE: dict[str, Callable[[Response], Any]] = {
    "response": attrgetter("text"),
    **{name: attrgetter(name) for name in ("stop_reason", "latency_ms", "first_byte_ms", "batch")},
    "asked_on": lambda response: response.asked_on or None,
    **{field.name: attrgetter(f"usage.{field.name}") for field in fields(Usage)},
}
"""Columns of `attempts` → getter for the value in an attempt or its response."""


def attempt_columns(track: Track, placed: Sequence[Placed]) -> dict[str, list[Any]]:
    """Returns the columns of the table `attempts`, without those that are constant within a partition."""
    attempts = [one.attempt for one in placed]
    responses = [attempt.response for attempt in attempts]
    failures = [attempt.call_failure for attempt in attempts]
    outcomes = [attempt.outcome for attempt in attempts]
    failed = [outcome if isinstance(outcome, Failed) else None for outcome in outcomes]
    tried = [response or failure for response, failure in zip(responses, failures, strict=True)]
    messages = [failure or error for failure, error in zip(failures, failed, strict=True)]
    return {
        **{name: list(map(of, attempts)) for name, of in _OF_ATTEMPT.items()},
        **{name: [r and of(r) for r in responses] for name, of in _OF_RESPONSE.items()},
        "reasoning": [one.reasoning or None for one in placed],
        "case_id": [one.case_id for one in placed],
        "turn_index": [one.turn_index for one in placed],
        "usd": [one.usd for one in placed],
        "artefact": [None if a.artefact is None else json_text(track.artefact_json(a.artefact)) for a in attempts],
        "outcome": [
            CALL_ERROR if failure else "failed" if error else "ran"
            for failure, error in zip(failures, failed, strict=True)
        ],
        "result": [json_text(outcome.value) if isinstance(outcome, Ran) else None for outcome in outcomes],
        "error_class": [error and error.error_class.value for error in failed],
        "error_message": [one and one.message for one in messages],
        "call_error": [failure and failure.kind.value for failure in failures],
        "retries": [one and one.retries for one in tried],
        "sandbox_tier": [outcome and outcome.tier for outcome in outcomes],
        "served_model": [_served(response, SERVED_MODEL) for response in responses],
        "system_fingerprint": [_served(response, SERVED_FINGERPRINT) for response in responses],
        "metadata": [response and json_text(dict(response.metadata)) for response in responses],
    }


def validation_columns(placed: Sequence[Placed]) -> dict[str, list[Any]]:
    """Returns the columns of the table `validation`."""
    attempts, found = [one.attempt for one in placed], [one.validation or _unread(one.attempt) for one in placed]
    return {
        "turn_id": [attempt.turn_id for attempt in attempts],
        "case_id": [one.case_id for one in placed],
        "turn_index": [one.turn_index for one in placed],
        "sample": [attempt.sample for attempt in attempts],
        "number": [attempt.number for attempt in attempts],
        "parsed": [one.parsed for one in found],
        "verdict": [one.verdict for one in found],
        "checks": [json_text(dict(one.checks)) for one in found],
        "errors": [json_text(list(one.errors)) for one in found],
    }


def _unread(attempt: Attempt) -> ValidationRow:
    failure = attempt.call_failure
    return ValidationRow(False, "invalid", {}, (failure.message if failure else "no response",))


def _served(response: Response | None, name: str) -> str | None:
    found = response.metadata.get(name) if response is not None else None
    return found if isinstance(found, str) and found else None


def attempt_from_row(track: Track, row: Mapping[str, Any]) -> Attempt:
    """Restores an attempt from a row of the record."""
    failure = None
    outcome: Outcome | None = None
    if row["call_error"]:
        failure = CallFailure(CallErrorKind(row["call_error"]), row["error_message"], row["retries"] or 0)
    elif row["outcome"] == "failed":
        outcome = Failed(ErrorClass(row["error_class"]), row["error_message"], row["sandbox_tier"])
    else:
        outcome = Ran(parse_json(row["result"]), row["sandbox_tier"])
    response = None
    if row["response"] is not None:
        response = Response(
            text=row["response"],
            stop_reason=row["stop_reason"],
            usage=Usage(row["input_tokens"], row["output_tokens"], row["cache_read_tokens"], row["cache_write_tokens"]),
            latency_ms=row["latency_ms"],
            call_error=failure.kind if failure else None,
        )
    return Attempt(
        turn_id=row["turn_id"],
        sample=row["sample"],
        number=row["number"],
        prompt_hash=row["prompt_hash"],
        response=response,
        call_failure=failure,
        artefact=track.artefact_from_json(parse_json(row["artefact"])) if row["artefact"] else None,
        outcome=outcome,
    )


READ = (
    "turn_id, case_id, turn_index, sample, number, prompt_hash, response, artefact, outcome, result, error_class, "
    "error_message, call_error, stop_reason, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, "
    "usd, latency_ms, retries, simulated, sandbox_tier"
).split(", ")


SPENT = ("stop_reason", "input_tokens", "output_tokens", "usd", "latency_ms", "simulated")
Made = list[tuple[Mapping[str, Any], Attempt]]
"""Attempts in the order in which they were made, each with the columns `SPENT` of its row."""


def spent_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the columns of a row that are kept beside its attempt."""
    return {name: row[name] for name in SPENT}


AttemptedTurn = tuple[Case, Turn, int, Made]
"""Case, turn, sample, and the attempts at it."""


def attempted_turns(inputs: Inputs) -> Iterator[AttemptedTurn]:
    """Yields every (case, turn, sample) of a partition that was attempted, in the suite's order, with its attempts.

    The cases contain the gold used for scoring: corrected turns have the corrected gold; of two accepted answers, the
    one that the last attempt agrees with is used; excluded turns are left out. Turns that the budget refused are left
    out, too.
    """
    gold = inputs.gold
    for case, turn, sample, made in published_turns(inputs):
        if gold.is_excluded(turn.id):
            continue
        scored = gold.case(case)
        accepted = gold.accepted(scored, scored.turns[turn.index])
        yield *agreeing(inputs.track, accepted, made), sample, made


def published_turns(inputs: Inputs) -> Iterator[AttemptedTurn]:
    """Like `attempted_turns`, but with the gold as published by the suite, and including excluded turns."""
    for part in inputs.parts():
        found: dict[tuple[str, int], Made] = {}
        for table in (GENERATIONS, RECOVERY_ATTEMPTS):
            for row, attempt in load_attempts(part, table):
                found.setdefault((attempt.turn_id, attempt.sample), []).append((row, attempt))
        samples = range(1 + max((sample for _, sample in found), default=0))
        for case in part.cases:
            for turn in case.turns:
                for sample in samples:
                    made = found.get((turn.id, sample))
                    if made and not not_asked(made[0][1]):
                        yield case, turn, sample, made


def agreeing(track: Track, accepted: Sequence[tuple[Case, Turn]], made: Made) -> tuple[Case, Turn]:
    """Returns the first gold of a turn by which its attempts are right; if by none, that which is nearest to them."""
    if len(accepted) == 1:
        return accepted[0]
    return max(accepted, key=lambda found: _rightness(track, found, made))


def _rightness(track: Track, found: tuple[Case, Turn], made: Made) -> tuple[bool, float]:
    """Returns whether attempts are right by a gold, then how near they are to it."""
    (case, turn), attempts = found, [attempt for _, attempt in made]
    evidence = gather_all(track, [(case, turn, attempts[-1])])[0]
    return is_right(track, track.values(case, turn, attempts, evidence)), nearness(track, evidence)


def not_asked(attempt: Attempt) -> bool:
    """Whether the budget refused the attempt."""
    return attempt.call_failure is not None and attempt.call_failure.kind is CallErrorKind.BUDGET


def load_attempts(inputs: Inputs, table: Table, outcome: str | None = None) -> Made:
    """Returns the attempts in one table of the partition.

    If only those with a certain outcome are needed, others are left out where that saves time.
    """

    def read(outcome: str | None = None) -> Made:
        groups = inputs.rows_within(table, READ)
        if outcome is not None:
            groups = (group.filter(pc.equal(group["outcome"], outcome)) for group in groups)
        return [(spent_of(row), attempt_from_row(inputs.track, row)) for group in groups for row in group.to_pylist()]

    if inputs.within is not None:
        return read(outcome)
    return inputs.remembered((table,), read)

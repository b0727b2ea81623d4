"""Rows of the per-turn tables, from one scored turn."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.core.ids import canonical_json, json_text, trace_id
from eval_pipeline.core.model import Attempt, Case, Failed, Json, MetricResult, Ran, Turn
from eval_pipeline.stages.run_metrics import Scored
from eval_pipeline.tracks.base import Track

WRONG_ANSWER = "wrong_answer"
CALL_ERROR = "call_error"
_NOTHING = MetricResult()


@dataclass(frozen=True, slots=True)
class Spent:
    """What all attempts at a turn took; None where a provider did not say."""

    input_tokens: int | None
    output_tokens: int | None
    usd: float | None
    latency_ms: float | None

    @property
    def tokens(self) -> int | None:
        """Input and output together."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class ScoredTurn:
    """One turn with everything known of it."""

    track: Track
    case: Case
    turn: Turn
    attempts: Sequence[Attempt]
    scored: Scored
    spent: Spent
    simulated: bool

    @property
    def final(self) -> Attempt:
        """The attempt that counts."""
        return self.attempts[-1]

    @property
    def correct(self) -> bool:
        """The primary metric on the final attempt."""
        return bool(self.scored.plain[self.track.primary_metric])

    @property
    def answer(self) -> str | None:
        """What the final attempt answered."""
        outcome = self.final.outcome
        return self.track.answer_text(outcome.value) if isinstance(outcome, Ran) else None

    @property
    def error_class(self) -> str | None:
        """Why the turn failed; None where it is right."""
        if self.final.call_failure is not None:
            return CALL_ERROR
        if isinstance(self.final.outcome, Failed):
            return self.final.outcome.error_class.value
        return None if self.correct else WRONG_ANSWER

    @property
    def error_message(self) -> str | None:
        """The final attempt's error, or what was expected instead of a wrong answer."""
        if self.final.call_failure is not None:
            return f"{self.final.call_failure.kind.value}: {self.final.call_failure.message}"
        if isinstance(self.final.outcome, Failed):
            return self.final.outcome.message
        return None if self.correct else f"expected {self.track.expected_text(self.turn)}, got {self.answer}"

    def place(self) -> dict[str, Any]:
        """The columns that say which turn a row is about."""
        turn = self.turn
        return {"turn_id": turn.id, "case_id": self.case.id, "turn_index": turn.index, "sample": self.final.sample}


def spent_on(rows: Sequence[Mapping[str, Any]], *, priced: bool) -> Spent:
    """Totals over the attempts at a turn.

    Calls that gave no response count no tokens; where all did so, there is no latency, and no dollars are 0 dollars
    only for a model that has a price.
    """
    answered = [row for row in rows if row["stop_reason"] is not None]
    if not answered:
        return Spent(0, 0, 0.0 if priced else None, None)
    return Spent(
        _total(answered, "input_tokens"),
        _total(answered, "output_tokens"),
        _total(answered, "usd"),
        _total(answered, "latency_ms"),
    )


def metric_columns(item: ScoredTurn, versions: Mapping[str, str]) -> dict[str, Sequence[Any]]:
    """Rows of the long `metrics` table, as columns: there are some twenty a turn."""
    plain, said = item.scored.plain, item.scored.results
    count = len(plain)
    columns: dict[str, Sequence[Any]] = {name: [value] * count for name, value in item.place().items()}
    labels = [value if isinstance(value, str) else None for value in plain.values()]
    failed = {name for name, result in said.items() if result.error}
    columns |= {
        "metric": list(plain),
        "value": [
            0.0 if name in failed else None if value is None or isinstance(value, str) else float(value)
            for name, value in plain.items()
        ],
        "label": labels,
        "scorer_version": [versions[name] for name in plain],
    }
    if not said:
        return columns | dict.fromkeys(("reason", "details", "error"), [None] * count)
    found = [said.get(name, _NOTHING) for name in plain]
    return columns | {
        "reason": [result.reason for result in found],
        "details": [json_text(dict(result.details)) if result.details else None for result in found],
        "error": [result.error for result in found],
    }


def wide_row(item: ScoredTurn) -> dict[str, Any]:
    """A row of `<track>_turns`."""
    track, spent = item.track, item.spent
    return {
        **item.place(),
        "question": item.turn.question,
        "expected": track.expected_text(item.turn),
        "answer": item.answer,
        "correct": item.correct,
        **_track_columns(item),
        **item.scored.plain,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "usd": spent.usd,
        "latency_ms": spent.latency_ms,
        "attempts": len(item.attempts),
    }


def _track_columns(item: ScoredTurn) -> dict[str, Any]:
    """The track's own columns, JSON as text."""
    values = dict(item.track.turn_row(item.case, item.turn, item.attempts))
    for column in item.track.turn_columns:
        if column.type == "JSON" and values[column.name] is not None:
            values[column.name] = json_text(values[column.name])
    return values


def result_row(item: ScoredTurn) -> dict[str, Any]:
    """A row of `turn_results`, the columns that all tracks share."""
    track, spent, failed = item.track, item.spent, item.final.outcome
    return {
        "track": track.name,
        **item.place(),
        "cluster": item.case.cluster,
        "tags": json_text(list(item.case.tags)),
        "question": item.turn.question,
        "expected": track.expected_text(item.turn),
        "answer": item.answer,
        "correct": item.correct,
        # A first attempt that ran is the only one, so it is right exactly when the turn is.
        "first_attempt_correct": item.correct and len(item.attempts) == 1,
        "score": track.score(item.scored.plain),
        "outcome": CALL_ERROR if item.final.call_failure else "failed" if isinstance(failed, Failed) else "ran",
        "error_class": item.error_class,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "tokens": spent.tokens,
        "usd": spent.usd,
        "latency_ms": spent.latency_ms,
        "attempts": len(item.attempts),
        "complexity": track.gold_complexity(item.turn),
        "simulated": item.simulated,
    }


def error_row(item: ScoredTurn, model_version: str, wide: Mapping[str, Any]) -> dict[str, Any]:
    """A row of `errors`: a failed turn with its full context; a wrong answer is one too."""
    plain = item.scored.plain
    shown = {
        "trace_id": trace_id(item.turn.id, model_version),
        **item.place(),
        "question": item.turn.question,
        "expected_answer": item.track.expected_text(item.turn),
        "answer": item.answer,
        "error_class": item.error_class,
        "error_message": item.error_message,
        "failure_mode": plain.get("failure_mode"),
        "has_type2_question": wide.get("has_type2_question"),
        "has_non_numeric_values": wide.get("has_non_numeric_values"),
        "plan_steps": plain.get("plan_steps"),
        "operations_per_turn": plain.get("operations_per_turn"),
        "attempts": len(item.attempts),
        "complexity": item.track.gold_complexity(item.turn),
    }
    return shown | {"error_context": json_text(shown | {"attempted": [_context(item, a) for a in item.attempts]})}


def _context(item: ScoredTurn, attempt: Attempt) -> dict[str, Json]:
    outcome, failure = attempt.outcome, attempt.call_failure
    return {
        "number": attempt.number,
        "artefact": item.track.artefact_json(attempt.artefact) if attempt.artefact is not None else None,
        "response": attempt.response.text if attempt.response else None,
        "result": outcome.value if isinstance(outcome, Ran) else None,
        "error": outcome.message if isinstance(outcome, Failed) else failure.message if failure else None,
    }


def _total(rows: Sequence[Mapping[str, Any]], column: str) -> Any:
    values = [row[column] for row in rows]
    return None if None in values else sum(values)


def plain_inputs(values: Mapping[str, Any]) -> str:
    """The inputs of a metric that failed, as JSON; what JSON cannot hold is shown as text."""
    return canonical_json(json.loads(json.dumps(values, default=repr)))

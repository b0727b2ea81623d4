"""Builds the columns of the per-turn tables from a block of scored turns."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from eval_pipeline.core.ids import canonical_json, json_text, trace_id
from eval_pipeline.core.model import CALL_ERROR, Attempt, Case, Failed, Json, MetricResult, Ran, Turn
from eval_pipeline.stages.scoring.metric_runner import MetricValues, of_kind
from eval_pipeline.store.parquet.writing import arrow_array
from eval_pipeline.tracks.base import Track

WRONG_ANSWER = "wrong_answer"

Values = Mapping[str, Sequence[Any] | pa.Array]
"""A table's columns by name, with one value per row."""


@dataclass(frozen=True, slots=True)
class Consumption:
    """Total consumption of all attempts at a turn; None if a provider did not report it."""

    input_tokens: int | None
    output_tokens: int | None
    usd: float | None
    latency_ms: float | None

    @property
    def tokens(self) -> int | None:
        """Input and output tokens together."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class AttemptedTurn:
    """A turn with all its attempts.

    Attributes:
        drifted: whether its gold gave another result than when the suite was read; None if it was not executed again.
    """

    case: Case
    turn: Turn
    attempts: Sequence[Attempt]
    spent: Consumption
    simulated: bool
    drifted: bool | None = None

    @property
    def final(self) -> Attempt:
        """The last attempt, which is the one that counts."""
        return self.attempts[-1]


class ScoredTurns:
    """A block of scored turns; every property holds one value per turn."""

    def __init__(self, track: Track, turns: Sequence[AttemptedTurn], scored: MetricValues) -> None:
        self.track, self.turns, self.scored = track, turns, scored

    @cached_property
    def place(self) -> dict[str, list[Any]]:
        """The columns that identify a row's turn."""
        return {
            "turn_id": [item.turn.id for item in self.turns],
            "case_id": [item.case.id for item in self.turns],
            "turn_index": [item.turn.index for item in self.turns],
            "sample": [item.final.sample for item in self.turns],
        }

    @property
    def reasons(self) -> Mapping[int, MetricResult]:
        """Turn → full result of the primary metric, where it gave a reason."""
        return self.scored.results.get(self.track.primary_metric, {})

    @cached_property
    def said(self) -> dict[str, list[Any]]:
        """The columns on question and answer."""
        return {
            "question": [item.turn.question for item in self.turns],
            "expected": [self.track.expected_text(item.turn) for item in self.turns],
            "answer": [
                self.track.answer_text(item.final.outcome.value) if isinstance(item.final.outcome, Ran) else None
                for item in self.turns
            ],
            "correct": [
                None if value is None else bool(value) for value in self.scored.plain[self.track.primary_metric]
            ],
        }

    @cached_property
    def took(self) -> dict[str, list[Any]]:
        """The columns on the consumption of all attempts together."""
        return {
            "input_tokens": [item.spent.input_tokens for item in self.turns],
            "output_tokens": [item.spent.output_tokens for item in self.turns],
            "usd": [item.spent.usd for item in self.turns],
            "latency_ms": [item.spent.latency_ms for item in self.turns],
            "attempts": [len(item.attempts) for item in self.turns],
        }

    @cached_property
    def error_classes(self) -> list[str | None]:
        """Why each turn failed; None if it is right or could not be scored."""
        pairs = zip(self.turns, self.said["correct"], strict=True)
        return [_error_class(item.final, correct) for item, correct in pairs]

    @cached_property
    def complexity(self) -> list[int]:
        """Steps to the right answer."""
        return [self.track.gold_complexity(item.turn) for item in self.turns]

    @cached_property
    def own(self) -> dict[str, list[Any]]:
        """The track's own columns, JSON as text."""
        rows = [self.track.turn_row(item.case, item.turn, item.attempts) for item in self.turns]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        for column in self.track.turn_columns:
            if column.type == "JSON":
                columns[column.name] = [None if v is None else json_text(v) for v in columns[column.name]]
        return columns


def spent_on(rows: Sequence[Mapping[str, Any]], *, priced: bool) -> Consumption:
    """Returns totals over the attempts at a turn.

    Calls without a response count no tokens; if all were such, latency is None, and the cost is 0 dollars only for a
    model that has a price.
    """
    answered = [row for row in rows if row["stop_reason"] is not None]
    if len(answered) == 1:  # the usual case
        row = answered[0]
        return Consumption(row["input_tokens"], row["output_tokens"], row["usd"], row["latency_ms"])
    if not answered:
        return Consumption(0, 0, 0.0 if priced else None, None)
    return Consumption(
        _total(answered, "input_tokens"),
        _total(answered, "output_tokens"),
        _total(answered, "usd"),
        _total(answered, "latency_ms"),
    )


def metric_columns(block: ScoredTurns, versions: Mapping[str, str]) -> Values:
    """Returns the long table `metrics`, with about twenty rows per turn.

    It is built one metric at a time and then sorted by turn, all in Arrow: as Python objects, these values would cost
    more than everything else in this stage.
    """
    count, metrics = len(block.turns), list(block.scored.plain)
    turn = np.repeat(np.arange(count), len(metrics))
    metric = np.tile(np.arange(len(metrics)), count)
    in_order = metric * count + turn
    found = [_metric_values(block.scored, name, count) for name in metrics]
    columns: dict[str, pa.Array] = {name: arrow_array(values).take(turn) for name, values in block.place.items()}
    columns |= {name: pa.concat_arrays([one[name] for one in found]).take(in_order) for name in found[0]}
    columns["metric"] = pa.array(metrics).take(metric)
    columns["scorer_version"] = pa.array([versions[name] for name in metrics]).take(metric)
    return columns


def _metric_values(scored: MetricValues, metric: str, count: int) -> dict[str, pa.Array]:
    """Returns one metric's values for all turns."""
    plain, results = scored.plain[metric], scored.results.get(metric, {})
    labels: dict[int, str | None] = {**of_kind(plain, str), **{turn: result.label for turn, result in results.items()}}

    def texts(by_turn: Mapping[int, str | None]) -> pa.Array:
        if not by_turn:  # the usual case
            return pa.nulls(count, pa.string())
        return arrow_array([by_turn.get(turn) for turn in range(count)], pa.string())

    return {
        "value": _numbers(plain, {turn for turn, result in results.items() if result.error}),
        "label": texts(labels),
        "reason": texts({turn: result.reason for turn, result in results.items()}),
        "details": texts({turn: json_text(dict(r.details)) for turn, r in results.items() if r.details}),
        "error": texts({turn: result.error for turn, result in results.items()}),
    }


def _numbers(plain: Sequence[Any], failed: Collection[int]) -> pa.Array:
    """Returns a metric's values as numbers, 0 where it failed."""
    if not failed and set(map(type, plain)) <= {bool, type(None)}:  # the usual case: a fourth of the time
        return pa.array(plain, pa.bool_()).cast(pa.float64())
    numbers = [None if value is None or isinstance(value, str) else float(value) for value in plain]
    for turn in failed:
        numbers[turn] = 0.0
    return pa.array(numbers, pa.float64())


def wide_columns(block: ScoredTurns) -> dict[str, Sequence[Any]]:
    """Returns the columns of `<track>_turns`."""
    return {**block.place, **block.said, **block.own, **block.scored.plain, **block.took}


def result_columns(block: ScoredTurns) -> Values:
    """Returns the columns of `turn_results`, which all tracks share."""
    track, turns, plain = block.track, block.turns, block.scored.plain
    return {
        "track": [track.name] * len(turns),
        **block.place,
        "cluster": [item.case.cluster for item in turns],
        "tags": [json_text(item.case.tags) for item in turns],
        **block.said,
        # An answer that ran has no recovery attempts, so if the first attempt ran, it is right exactly when the turn
        # is.
        "first_attempt_correct": [
            correct and len(item.attempts) == 1 for item, correct in zip(turns, block.said["correct"], strict=True)
        ],
        "score": [
            None if correct is None else track.score(dict(zip(plain, values, strict=True)))
            for correct, *values in zip(block.said["correct"], *plain.values(), strict=True)
        ],
        "outcome": [
            CALL_ERROR if item.final.call_failure else "failed" if isinstance(item.final.outcome, Failed) else "ran"
            for item in turns
        ],
        "error_class": block.error_classes,
        "tokens": [item.spent.tokens for item in turns],
        **block.took,
        "complexity": block.complexity,
        "simulated": [item.simulated for item in turns],
        "gold_drifted": [item.drifted for item in turns],
    }


_SHOWN = frozenset({"question", "expected", "answer", "failure_mode"})
"""Columns common to all tracks that an error row shows."""


def error_rows(block: ScoredTurns, model_version: str) -> list[dict[str, Any]]:
    """Returns the rows of `errors`: failed turns, including wrong answers, with their full context."""
    track = block.track
    own = {*(column.name for column in track.feature_columns), *track.error_columns}
    wide = {name: v for name, v in wide_columns(block).items() if name in own or name in _SHOWN or name in block.place}
    wrong = [place for place, correct in enumerate(block.said["correct"]) if correct is False]
    return [_error_row(block, place, {n: v[place] for n, v in wide.items()}, model_version) for place in wrong]


def _error_row(block: ScoredTurns, place: int, wide: Mapping[str, Any], model_version: str) -> dict[str, Any]:
    item, track = block.turns[place], block.track
    shown = {
        "trace_id": trace_id(item.turn.id, model_version),
        **{name: wide[name] for name in block.place},
        "question": wide["question"],
        "expected_answer": wide["expected"],
        "answer": wide["answer"],
        "error_class": block.error_classes[place],
        "error_message": _error_message(track, item, wide["expected"], wide["answer"], block.reasons.get(place)),
        "failure_mode": wide.get("failure_mode"),
        "attempts": len(item.attempts),
        "complexity": block.complexity[place],
    }
    own = {name: wide[name] for name in (*track.error_columns, *(column.name for column in track.feature_columns))}
    context = shown | own | {"attempted": [_context(track, a) for a in item.attempts]}
    return shown | {"error_context": json_text(context)}


def _context(track: Track, attempt: Attempt) -> dict[str, Json]:
    outcome, failure = attempt.outcome, attempt.call_failure
    return {
        "number": attempt.number,
        "artefact": track.artefact_json(attempt.artefact) if attempt.artefact is not None else None,
        "response": attempt.response.text if attempt.response else None,
        "result": outcome.value if isinstance(outcome, Ran) else None,
        "error": outcome.message if isinstance(outcome, Failed) else failure.message if failure else None,
    }


def _error_class(final: Attempt, correct: bool | None) -> str | None:
    if correct is None:
        return None
    if final.call_failure is not None:
        return CALL_ERROR
    if isinstance(final.outcome, Failed):
        return final.outcome.error_class.value
    return None if correct else WRONG_ANSWER


def _error_message(
    track: Track, item: AttemptedTurn, expected: str, answer: str | None, reason: MetricResult | None
) -> str:
    """Returns the error of a failed turn's final attempt; for a wrong answer, how it differs from the expected one."""
    final = item.final
    if final.call_failure is not None:
        return f"{final.call_failure.kind.value}: {final.call_failure.message}"
    if isinstance(final.outcome, Failed):
        return final.outcome.message
    if track.reason_tells_difference and reason is not None and reason.reason:
        return reason.reason
    different = track.difference(item.case, item.turn, final.outcome.value) if isinstance(final.outcome, Ran) else None
    return different or f"expected {expected}, got {answer}"


def metric_error_rows(block: ScoredTurns, at: datetime) -> list[dict[str, Any]]:
    """Returns the rows of `metric_errors`, found at that time."""
    return [
        {
            "turn_id": block.turns[failure.turn].turn.id,
            "sample": block.turns[failure.turn].final.sample,
            "metric": failure.metric,
            "inputs": plain_inputs(failure.inputs),
            "message": failure.message,
            "stack_trace": failure.stack_trace,
            "at": at,
        }
        for failure in block.scored.failures
    ]


def _total(rows: Sequence[Mapping[str, Any]], column: str) -> Any:
    values = [row[column] for row in rows]
    return None if None in values else sum(values)


def plain_inputs(values: Mapping[str, Any]) -> str:
    """Returns the inputs of a failed metric as JSON; values that JSON cannot represent are shown as text."""
    return canonical_json(json.loads(json.dumps(values, default=repr)))

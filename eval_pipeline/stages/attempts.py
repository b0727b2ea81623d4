"""Attempts as rows of the record, and back."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import (
    Attempt,
    CallErrorKind,
    CallFailure,
    Case,
    ErrorClass,
    Failed,
    Json,
    Outcome,
    Partition,
    Ran,
    Response,
    Turn,
    Usage,
)
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.tables import GENERATIONS, RECOVERY_ATTEMPTS
from eval_pipeline.tracks.base import Track

T = TypeVar("T")

Attempts = Mapping[tuple[str, int], list[Attempt]]
"""Every attempt by (turn id, sample), in the order of their numbers."""


def attempt_row(track: Track, turn: Turn, case_id: str, attempt: Attempt, usd: float | None) -> dict[str, Any]:
    """A row of the `attempts` table, without the columns that are the same for a whole partition."""
    response, failure, outcome = attempt.response, attempt.call_failure, attempt.outcome
    usage = response.usage if response else Usage(None, None)
    failed = outcome if isinstance(outcome, Failed) else None
    return {
        "turn_id": turn.id,
        "case_id": case_id,
        "turn_index": turn.index,
        "sample": attempt.sample,
        "number": attempt.number,
        "prompt_hash": attempt.prompt_hash,
        "response": response.text if response else None,
        "artefact": _json(track.artefact_json(attempt.artefact)) if attempt.artefact is not None else None,
        "outcome": "call_error" if failure else "failed" if failed else "ran",
        "result": _json(outcome.value) if isinstance(outcome, Ran) else None,
        "error_class": failed.error_class.value if failed else None,
        "error_message": failure.message if failure else failed.message if failed else None,
        "call_error": failure.kind.value if failure else None,
        "stop_reason": response.stop_reason if response else None,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens if response else None,
        "cache_write_tokens": usage.cache_write_tokens if response else None,
        "usd": usd,
        "latency_ms": response.latency_ms if response else None,
        "first_byte_ms": response.first_byte_ms if response else None,
        "retries": response.retries if response else failure.retries if failure else None,
        "asked_on": response.asked_on if response else None,
        "batch": response.batch if response else None,
        "sandbox_tier": None,
        "metadata": _json(dict(response.metadata)) if response else None,
    }


def attempt_from_row(track: Track, row: Mapping[str, Any]) -> Attempt:
    """The attempt that a row of the record stands for."""
    failure = None
    outcome: Outcome | None = None
    if row["call_error"]:
        failure = CallFailure(CallErrorKind(row["call_error"]), row["error_message"], row["retries"] or 0)
    elif row["outcome"] == "failed":
        outcome = Failed(ErrorClass(row["error_class"]), row["error_message"])
    else:
        outcome = Ran(json.loads(row["result"]))
    response = None
    if failure is None:
        response = Response(
            text=row["response"],
            stop_reason=row["stop_reason"],
            usage=Usage(
                row["input_tokens"], row["output_tokens"], row["cache_read_tokens"], row["cache_write_tokens"]
            ),
            latency_ms=row["latency_ms"],
        )
    return Attempt(
        turn_id=row["turn_id"],
        sample=row["sample"],
        number=row["number"],
        prompt_hash=row["prompt_hash"],
        response=response,
        call_failure=failure,
        artefact=track.artefact_from_json(json.loads(row["artefact"])) if row["artefact"] else None,
        outcome=outcome,
    )


READ = (
    "turn_id, case_id, turn_index, sample, number, prompt_hash, response, artefact, outcome, result, error_class, "
    "error_message, call_error, stop_reason, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, "
    "usd, latency_ms, retries, simulated"
).split(", ")


def load_rows(record: Record, partition: Partition) -> list[dict[str, Any]]:
    """Rows of generations and recovery attempts that `attempt_from_row` and the metrics need, generations first."""
    key = RecordKey.of(partition)
    rows: list[dict[str, Any]] = record.read(GENERATIONS, key, READ).to_pylist()
    if record.header(RECOVERY_ATTEMPTS, key) is not None:
        rows += record.read(RECOVERY_ATTEMPTS, key, READ).to_pylist()
    return rows


def group_attempts(track: Track, rows: Iterable[Mapping[str, Any]]) -> Attempts:
    """Attempts by turn and sample, in the order of the rows."""
    grouped: defaultdict[tuple[str, int], list[Attempt]] = defaultdict(list)
    for row in rows:
        grouped[row["turn_id"], row["sample"]].append(attempt_from_row(track, row))
    return grouped


def attempted_turns(
    cases: Iterable[Case], attempts: Mapping[tuple[str, int], T]
) -> Iterator[tuple[Case, Turn, int, T]]:
    """Every (case, turn, sample) that was attempted, in the suite's order, with what is kept of it."""
    samples = range(1 + max((sample for _, sample in attempts), default=0))
    for case in cases:
        for turn in case.turns:
            for sample in samples:
                if (turn.id, sample) in attempts:
                    yield case, turn, sample, attempts[turn.id, sample]


def _json(value: Json) -> str:
    return canonical_json(value)

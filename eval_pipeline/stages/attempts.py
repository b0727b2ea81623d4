"""Attempts as rows of the record, and back."""

from collections.abc import Iterator, Mapping
from typing import Any

from eval_pipeline.core.ids import json_text, parse_json
from eval_pipeline.core.model import (
    CALL_ERROR,
    Attempt,
    CallErrorKind,
    CallFailure,
    Case,
    ErrorClass,
    Failed,
    Outcome,
    Partition,
    Ran,
    Response,
    Turn,
    Usage,
)
from eval_pipeline.stages.lineage import content_hashes
from eval_pipeline.stages.workspace import Workspace
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import GENERATIONS, RECOVERY_ATTEMPTS
from eval_pipeline.tracks.base import Track


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
        "artefact": json_text(track.artefact_json(attempt.artefact)) if attempt.artefact is not None else None,
        "outcome": CALL_ERROR if failure else "failed" if failed else "ran",
        "result": json_text(outcome.value) if isinstance(outcome, Ran) else None,
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
        "sandbox_tier": outcome.tier if outcome is not None else None,
        "metadata": json_text(dict(response.metadata)) if response else None,
    }


def attempt_from_row(track: Track, row: Mapping[str, Any]) -> Attempt:
    """The attempt that a row of the record stands for."""
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
"""Attempts in the order in which they were made, each with what its row of the record says under `SPENT`."""


def spent_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a row beside the attempt made from it."""
    return {name: row[name] for name in SPENT}


def attempted_turns(workspace: Workspace, partition: Partition) -> Iterator[tuple[Case, Turn, int, Made]]:
    """Every (case, turn, sample) of a partition that was attempted, in the suite's order, with what was made of it.

    Turns that the budget did not allow to be asked were not.
    """
    found: dict[tuple[str, int], Made] = {}
    for table in (GENERATIONS, RECOVERY_ATTEMPTS):
        for row, attempt in load_attempts(workspace, partition, table):
            found.setdefault((attempt.turn_id, attempt.sample), []).append((row, attempt))
    samples = range(1 + max((sample for _, sample in found), default=0))
    for case in workspace.cases(partition.suite):
        for turn in case.turns:
            for sample in samples:
                made = found.get((turn.id, sample))
                if made and not _not_asked(made[0][1]):
                    yield case, turn, sample, made


def _not_asked(attempt: Attempt) -> bool:
    return attempt.call_failure is not None and attempt.call_failure.kind is CallErrorKind.BUDGET


def load_attempts(workspace: Workspace, partition: Partition, table: Table) -> Made:
    """The attempts of one table of the partition; kept while the record stays, for the stages of one process."""
    track, key = workspace.track(partition.suite), RecordKey.of(partition)

    def read() -> Made:
        rows = workspace.record.read(table, key, READ).to_pylist()
        return [(spent_of(row), attempt_from_row(track, row)) for row in rows]

    return workspace.remembered(table.name, content_hashes(workspace.record, partition, (table,)), read)


def keep_attempts(workspace: Workspace, partition: Partition, table: Table, made: Made) -> None:
    """Saves the stages after this one, in the same process, reading back what was just written."""
    workspace.remembered(table.name, content_hashes(workspace.record, partition, (table,)), lambda: made)

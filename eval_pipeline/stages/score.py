"""Turn metrics: every metric of the track on every turn, long and wide, and the records of what went wrong."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from eval_pipeline.core.model import Partition
from eval_pipeline.stages.attempts import attempted_turns
from eval_pipeline.stages.columns import ColumnBlocks, Columns
from eval_pipeline.stages.gather_evidence import load_evidence
from eval_pipeline.stages.lineage import combined_hash, content_hashes
from eval_pipeline.stages.run_metrics import MetricRunner
from eval_pipeline.stages.runs import now
from eval_pipeline.stages.tables import turns_table
from eval_pipeline.stages.turn_rows import (
    ScoredTurn,
    error_row,
    metric_columns,
    plain_inputs,
    result_row,
    spent_on,
    wide_row,
)
from eval_pipeline.stages.workspace import StageResult, Workspace
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import (
    CASES,
    ERRORS,
    EVIDENCE,
    GENERATIONS,
    METRIC_ERRORS,
    METRICS,
    RECOVERY_ATTEMPTS,
    TURN_RESULTS,
)
from eval_pipeline.tracks.base import Track

VERSION = "1"
METRIC_GROUP = 20_000
"""Rows of a row group of the long table, which are short."""


def score(workspace: Workspace, partition: Partition) -> StageResult:
    """Scores every turn of the partition into `metrics`, the per-turn tables, `errors` and `metric_errors`."""
    track, record = workspace.track(partition.suite), workspace.record
    key = RecordKey.of(partition)
    made_from, tables = _made_from(workspace, partition), _tables(track)
    reused = is_current(workspace, partition)
    if not reused:
        with ExitStack() as stack:
            opened = [stack.enter_context(record.writer(table, key, made_from)) for table in tables]
            metrics = ColumnBlocks(opened[0], METRIC_GROUP)
            wide, errors, metric_errors, results = (Columns(writer) for writer in opened[1:])
            versions = {metric.name: str(metric.version) for metric in track.metrics}
            for item in _scored_turns(workspace, partition, track):
                metrics.extend(metric_columns(item, versions))
                wide.add(wide_values := wide_row(item))
                results.add(result_row(item))
                if not item.correct:
                    errors.add(error_row(item, partition.model_version, wide_values))
                for failure_row in _metric_error_rows(item):
                    metric_errors.add(failure_row)
            for rows in (metrics, wide, errors, metric_errors, results):
                rows.flush()
    header, failed = record.header(TURN_RESULTS, key), record.header(METRIC_ERRORS, key)
    assert header is not None and failed is not None
    facts = {"turns": header.rows, "accuracy": accuracy(record, key), "metric_errors": failed.rows}
    return StageResult(header.rows, combined_hash(record, partition, tables), reused, facts)


def is_current(workspace: Workspace, partition: Partition) -> bool:
    """Whether the record holds what `score` would make."""
    made_from, key = _made_from(workspace, partition), RecordKey.of(partition)
    tables = _tables(workspace.track(partition.suite))
    return all(workspace.record.is_current(table, key, made_from) for table in tables)


def _tables(track: Track) -> tuple[Table, ...]:
    return (METRICS, turns_table(track), ERRORS, METRIC_ERRORS, TURN_RESULTS)


def _made_from(workspace: Workspace, partition: Partition) -> dict[str, str]:
    track = workspace.track(partition.suite)
    made_from = content_hashes(workspace.record, partition, (CASES, GENERATIONS, RECOVERY_ATTEMPTS, EVIDENCE))
    return made_from | {"metrics": scorer_versions(track), "scorer": track.versions["scorer"], "stage": VERSION}


def scorer_versions(track: Track) -> str:
    """The versions of a track's metrics as one text: changes when any metric's meaning does."""
    return ",".join(f"{metric.name}:{metric.version}" for metric in track.metrics)


def accuracy(record: Record, key: RecordKey) -> float | None:
    """Share of the partition's turns that are right; None where there are none."""
    correct = record.read(TURN_RESULTS, key, ["correct"])["correct"].to_pylist()
    return sum(correct) / len(correct) if correct else None


def _scored_turns(workspace: Workspace, partition: Partition, track: Track) -> Iterator[ScoredTurn]:
    evidence = load_evidence(workspace, partition)
    made_turns = list(attempted_turns(workspace, partition))
    priced = any(row["usd"] is not None for *_, made in made_turns for row, _ in made)
    runner = MetricRunner(track.metrics)
    for case, turn, sample, made in made_turns:
        attempts = [attempt for _, attempt in made]
        values = track.values(case, turn, attempts, evidence.get((turn.id, sample), ()))
        rows = [row for row, _ in made]
        yield ScoredTurn(
            track, case, turn, attempts, runner.run(values), spent_on(rows, priced=priced), bool(rows[0]["simulated"])
        )


def _metric_error_rows(item: ScoredTurn) -> Iterator[dict[str, Any]]:
    for failure in item.scored.failures:
        yield {
            "turn_id": item.turn.id,
            "sample": item.final.sample,
            "metric": failure.metric,
            "inputs": plain_inputs(failure.inputs),
            "message": failure.message,
            "stack_trace": failure.stack_trace,
            "at": now(),
        }

"""Turn metrics: every metric of the track on every turn, long and wide, and the records of what went wrong."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any

from eval_pipeline.core.model import Evidence, Partition
from eval_pipeline.stages.attempts.rows import attempted_turns
from eval_pipeline.stages.evidence import load_evidence
from eval_pipeline.stages.judging import load_judgements
from eval_pipeline.stages.scoring.metric_runner import MetricRunner
from eval_pipeline.stages.scoring.turn_rows import (
    AttemptedTurn,
    ScoredTurns,
    error_rows,
    metric_columns,
    metric_error_rows,
    result_columns,
    spent_on,
    wide_columns,
)
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import (
    CASES,
    ERRORS,
    EVIDENCE,
    GENERATIONS,
    JUDGEMENTS,
    METRIC_ERRORS,
    METRICS,
    RECOVERY_ATTEMPTS,
    TURN_RESULTS,
)
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import Judged, Tabulates, turn_tables_of
from eval_pipeline.workspace.columns import Columns, by_name
from eval_pipeline.workspace.lineage import combined_hash, content_hashes
from eval_pipeline.workspace.progress import SILENT, counted, label_of
from eval_pipeline.workspace.runs import now
from eval_pipeline.workspace.track_tables import turns_table
from eval_pipeline.workspace.workspace import Progress, StageResult, Workspace

VERSION = "1"
BLOCK = 1000
"""Turns scored and written together: small enough to bound memory, large enough to be fast."""

Rows = Columns[Mapping[str, Any]]
EvidenceByTurn = Mapping[tuple[str, int], Sequence[Evidence]]


def score(workspace: Workspace, partition: Partition, progress: Progress = SILENT) -> StageResult:
    """Scores every turn of the partition into `metrics`, the per-turn tables, `errors` and `metric_errors`."""
    track, record = workspace.track(partition.suite), workspace.record
    key = RecordKey.of(partition)
    made_from, tables = _made_from(workspace, partition), _tables(track)
    reused = is_current(workspace, partition)
    if not reused:
        with ExitStack() as stack:
            opened = [stack.enter_context(record.writer(table, key, made_from)) for table in tables]
            metrics, wide, errors, metric_errors, results = opened[:5]
            further = [Columns(writer, by_name) for writer in opened[5:]]
            failed_turns, failed_metrics = Columns(errors, by_name), Columns(metric_errors, by_name)
            versions = {metric.name: str(metric.version) for metric in track.metrics}
            for block in _scored_blocks(workspace, partition, track, progress):
                metrics.write(metric_columns(block, versions))
                wide.write(wide_columns(block))
                results.write(result_columns(block))
                failed_turns.extend(error_rows(block, partition.model_version))
                failed_metrics.extend(metric_error_rows(block, now()))
                _add_further_rows(further, block, load_evidence(workspace, partition))
            for rows in (failed_turns, failed_metrics, *further):
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
    return (METRICS, turns_table(track), ERRORS, METRIC_ERRORS, TURN_RESULTS, *turn_tables_of(track))


def _made_from(workspace: Workspace, partition: Partition) -> dict[str, str]:
    track = workspace.track(partition.suite)
    judged = (JUDGEMENTS,) if isinstance(track, Judged) else ()
    sources = (CASES, GENERATIONS, RECOVERY_ATTEMPTS, EVIDENCE, *judged)
    made_from = content_hashes(workspace.record, partition, sources)
    return made_from | {"metrics": scorer_versions(track), "scorer": track.versions["scorer"], "stage": VERSION}


def scorer_versions(track: Track) -> str:
    """The versions of a track's metrics as one text: changes when any metric's meaning does."""
    return ",".join(f"{metric.name}:{metric.version}" for metric in track.metrics)


def accuracy(record: Record, key: RecordKey) -> float | None:
    """Share of the partition's turns that are right; None where there are none."""
    correct = record.read(TURN_RESULTS, key, ["correct"])["correct"].to_pylist()
    return sum(correct) / len(correct) if correct else None


def _scored_blocks(
    workspace: Workspace, partition: Partition, track: Track, progress: Progress
) -> Iterator[ScoredTurns]:
    evidence, judgements = load_evidence(workspace, partition), load_judgements(workspace, partition)
    made_turns = list(attempted_turns(workspace, partition))
    priced = any(row["usd"] is not None for *_, made in made_turns for row, _ in made)
    runner = MetricRunner(track.metrics)
    waiting = iter(counted(progress, label_of(partition, "scoring"), made_turns, len(made_turns)))
    while block := list(islice(waiting, BLOCK)):
        turns, values = [], []
        for case, turn, sample, made in block:
            attempts, rows = [attempt for _, attempt in made], [row for row, _ in made]
            spent = spent_on(rows, priced=priced)
            turns.append(AttemptedTurn(case, turn, attempts, spent, bool(rows[0]["simulated"])))
            found = (*evidence.get((turn.id, sample), ()), *judgements.get((turn.id, sample), ()))
            values.append(track.values(case, turn, attempts, found))
        yield ScoredTurns(track, turns, runner.run(values))


def _add_further_rows(further: Sequence[Rows], block: ScoredTurns, evidence: EvidenceByTurn) -> None:
    """Rows of the track's further tables, in the order of `turn_tables`."""
    track = block.track
    if not isinstance(track, Tabulates):
        return
    for item in block.turns:
        place = {"turn_id": item.turn.id, "case_id": item.case.id, "turn_index": item.turn.index}
        place["sample"] = item.final.sample
        found = evidence.get((item.turn.id, item.final.sample), ())
        rows = track.table_rows(item.case, item.turn, item.attempts, found)
        for table, columns in zip(track.turn_tables, further, strict=True):
            columns.extend(place | dict(row) for row in rows[table.name])

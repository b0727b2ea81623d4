"""What has to hold of a suite and of an evaluation: pure verdicts that asset checks, the CLI and tests show."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random

from eval_pipeline.core.model import Attempt, Case, Json, Partition, Response, Turn
from eval_pipeline.stages.ask import parse_response, run_artefact
from eval_pipeline.stages.generate import planned_cases
from eval_pipeline.stages.run_metrics import MetricRunner
from eval_pipeline.stages.workspace import Workspace
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import METRIC_ERRORS, TURN_RESULTS
from eval_pipeline.tracks.base import Executor, Metric, Track

METRIC_ERROR_LIMIT = 0
ENDS_CHECKED = 1000
"""Turns on which the asset check tries gold and no answer; `eval-pipeline validate` tries all."""
SHOWN = 20
"""Findings listed in a verdict; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether something holds.

    Attributes:
        text: one sentence.
        facts: numbers and examples behind it.
    """

    passed: bool
    text: str
    facts: Mapping[str, Json] = field(default_factory=dict)


def check_gold(track: Track, cases: Sequence[Case]) -> Verdict:
    """Every turn's own gold holds (its program runs to its answer)."""
    wrong = [(turn.id, reason) for case in cases for turn, reason in track.check_gold(case)]
    turns = sum(len(case.turns) for case in cases)
    facts = {"turns": turns, "wrong_gold": len(wrong), "examples": [f"{turn}: {why}" for turn, why in wrong[:SHOWN]]}
    if not wrong:
        return Verdict(True, f"the gold of all {turns} turns holds", facts)
    return Verdict(
        False, f"the gold of {len(wrong)} of {turns} turns does not hold; they are left out of the oracle's 1.0", facts
    )


def check_ends(track: Track, cases: Sequence[Case], most: int | None = None) -> Verdict:
    """The gold answers score 1.0 and no answer scores 0.0, through parsing, execution and metrics.

    Turns whose own gold does not hold are left out. Of a suite with more turns than `most`, whole cases are drawn at
    random, the same ones each time.
    """
    turns = sum(len(case.turns) for case in cases)
    drawn = list(cases)
    if most is not None and turns > most:
        Random(0).shuffle(drawn)
        ends = accumulate(len(case.turns) for case in drawn)
        drawn = [case for case, end in zip(drawn, ends, strict=True) if end <= most]
    return asyncio.run(_check_ends(track, drawn, turns))


async def _check_ends(track: Track, cases: Sequence[Case], whole: int) -> Verdict:
    runner = MetricRunner(_metrics_behind_primary(track))
    wrong: list[str] = []
    turns = 0
    async with track.executor() as executor:
        for case in cases:
            excluded = {turn.id for turn, _ in track.check_gold(case)}
            for turn in case.turns:
                if turn.id in excluded:
                    continue
                turns += 1
                if not await _is_correct(track, runner, executor, case, turn, track.oracle(turn)):
                    wrong.append(f"{turn.id}: the gold answer scores 0")
                if not track.gold_is_empty(turn) and await _is_correct(track, runner, executor, case, turn, ""):
                    wrong.append(f"{turn.id}: no answer scores 1")
    facts = {"turns": turns, "wrong": len(wrong), "examples": wrong[:SHOWN]}
    if wrong:
        return Verdict(False, f"{len(wrong)} times the metrics misjudge the gold answer or no answer", facts)
    drawn = f"all {turns}" if sum(len(case.turns) for case in cases) == whole else f"{turns} turns drawn from {whole}"
    return Verdict(True, f"gold answers score 1.0 and no answer 0.0 on {drawn} turns", facts)


async def _is_correct(
    track: Track, runner: MetricRunner, executor: Executor, case: Case, turn: Turn, text: str
) -> bool:
    artefact, error = parse_response(track, text)
    outcome = await run_artefact(executor, case, artefact, error)
    attempt = Attempt(turn.id, 0, 0, "", Response(text), None, artefact, outcome)
    values = track.values(case, turn, [attempt], track.gather(case, turn, attempt))
    return bool(runner.run(values).plain[track.primary_metric])


def _metrics_behind_primary(track: Track) -> list[Metric]:
    """The primary metric and those it takes, in the track's order."""
    by_name = {metric.name: metric for metric in track.metrics}
    needed, waiting = set[str](), [track.primary_metric]
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in needed:
            needed.add(name)
            waiting += by_name[name].inputs()
    return [metric for metric in track.metrics if metric.name in needed]


def check_every_turn_once(workspace: Workspace, partition: Partition) -> Verdict:
    """Every planned turn and sample has exactly one result."""
    record, key = workspace.record, RecordKey.of(partition)
    version = workspace.model_version(partition.model_version)
    cases = planned_cases(workspace, partition)
    samples = range(version.samples_per_turn)
    planned = {(turn.id, sample) for case in cases for turn in case.turns for sample in samples}
    table = record.read(TURN_RESULTS, key, ["turn_id", "sample"])
    scored = Counter(zip(table["turn_id"].to_pylist(), table["sample"].to_pylist(), strict=True))
    missing = sorted(planned - scored.keys())
    extra = sorted(scored.keys() - planned)
    twice = sorted(place for place, count in scored.items() if count > 1)
    facts = {"planned": len(planned), "missing": len(missing), "unplanned": len(extra), "twice": len(twice)}
    if not (missing or extra or twice):
        return Verdict(True, f"all {len(planned)} planned turns are scored once", facts)
    examples = [f"{turn} (sample {sample})" for turn, sample in (missing + extra + twice)[:SHOWN]]
    text = (
        f"of {len(planned)} planned turns {len(missing)} are missing, {len(extra)} were not planned, {len(twice)} twice"
    )
    return Verdict(False, text, facts | {"examples": examples})


def check_metric_errors(workspace: Workspace, partition: Partition) -> Verdict:
    """No metric failed on any turn."""
    table = workspace.record.read(METRIC_ERRORS, RecordKey.of(partition), ["metric", "turn_id", "message"])
    rows = table.to_pylist()
    by_metric = dict(Counter(row["metric"] for row in rows))
    examples = [f"{row['metric']} on {row['turn_id']}: {row['message']}" for row in rows[:SHOWN]]
    facts = {"metric_errors": len(rows), "by_metric": by_metric, "examples": examples}
    if len(rows) <= METRIC_ERROR_LIMIT:
        return Verdict(True, "every metric ran on every turn", facts)
    return Verdict(False, f"metrics failed {len(rows)} times; see table metric_errors", facts)

"""The check that gold answers score 1.0 and no answer 0.0."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from random import Random

from eval_pipeline.core.model import Attempt, Case, Outcome, Response, Turn
from eval_pipeline.core.shown import turns as turns_text
from eval_pipeline.stages.attempts.ask import parse_response, run_artefact
from eval_pipeline.stages.checks.verdicts import SHOWN, CheckVerdict
from eval_pipeline.stages.scoring.metric_runner import MetricRunner, metrics_behind_primary
from eval_pipeline.tracks.abilities import executor_of, gather_all
from eval_pipeline.tracks.base import Executor, Track
from eval_pipeline.workspace.progress import SILENT, counted
from eval_pipeline.workspace.workspace import Progress

ENDS_CHECKED = 1000
"""Number of turns that the asset check of gold answers covers; `eval-pipeline validate` covers all."""


def check_ends(
    track: Track,
    cases: Sequence[Case],
    most: int | None = None,
    progress: Progress = SILENT,
    label: str = "",
    excluded: Collection[str] = (),
    drawn_from: int = 0,
) -> CheckVerdict:
    """Checks that gold answers score 1.0 and empty answers 0.0, through parsing, execution and metrics.

    Turns with invalid gold and those `excluded` are left out. If a suite has more than `most` turns, whole cases are
    drawn at random, always the same ones; if the cases are drawn already, `drawn_from` is the suite's number of turns.
    `progress` is told of cases, under the label.
    """
    turns = [len(case.turns) for case in cases]
    drawn = [cases[place] for place in drawn_places(turns, most)]
    whole = drawn_from or sum(turns)
    left_out = set(excluded)
    counting = counted(progress, label, drawn, len(drawn))
    return check_ends_of(
        track, ((one, left_out | {turn.id for turn, _ in track.check_gold(one)}) for one in counting), whole
    )


def check_ends_of(
    track: Track, cases: Iterable[tuple[Case, Collection[str]]], whole: int | None = None
) -> CheckVerdict:
    """Checks as `check_ends` does, case by case.

    Args:
        track: the track.
        cases: each with the ids of its turns that are left out.
        whole: the number of turns of the suite; None if these are all cases.
    """
    return asyncio.run(_check_ends(track, cases, whole))


def drawn_places(turns: Sequence[int], most: int | None) -> list[int]:
    """Returns the places of cases, given the number of turns of each: all, or some with at most so many turns."""
    places = list(range(len(turns)))
    if most is None or sum(turns) <= most:
        return places
    Random(0).shuffle(places)
    ends = accumulate(turns[place] for place in places)
    return [place for place, end in zip(places, ends, strict=True) if end <= most]


async def _check_ends(track: Track, cases: Iterable[tuple[Case, Collection[str]]], whole: int | None) -> CheckVerdict:
    runner = MetricRunner(metrics_behind_primary(track))
    wrong, failed = list[str](), list[str]()
    turns = seen = 0
    async with executor_of(track) as executor:
        for case, excluded in cases:
            seen += len(case.turns)
            looked_at = [turn for turn in case.turns if turn.id not in excluded]
            turns += len(looked_at)
            given: list[tuple[Turn, str | None]] = []
            for turn in looked_at:
                given += [(turn, track.oracle(turn)), *([] if track.gold_is_empty(turn) else [(turn, None)])]
            answers = [(turn, text or "") for turn, text in given]
            verdicts = await judged(track, runner, executor, case, answers, failed)
            for (turn, text), (_, right) in zip(given, verdicts, strict=True):
                if right != (text is not None):
                    wrong.append(f"{turn.id}: {'no answer scores 1' if right else 'the gold answer scores 0'}")
    facts = {"turns": turns, "wrong": len(wrong), "examples": wrong[:SHOWN]}
    if wrong:
        why = f", as {failed[0]}" if failed else f", e.g. {wrong[0]}"
        return CheckVerdict(False, f"{len(wrong)} times the metrics misjudge the gold answer or no answer{why}", facts)
    drawn = f"all {turns_text(turns)}"
    if whole not in (None, seen):
        drawn = f"{turns_text(turns)} drawn from {whole}"
    return CheckVerdict(True, f"gold answers score 1.0 and no answer 0.0 on {drawn}", facts)


async def judged(
    track: Track,
    runner: MetricRunner,
    executor: Executor,
    case: Case,
    given: Sequence[tuple[Turn, str]],
    failed: list[str] | None = None,
) -> list[tuple[Outcome | None, bool]]:
    """Returns for each answer to a turn what came of it, and whether it is right; adds to `failed` what metrics did."""
    made: list[tuple[Case, Turn, Attempt]] = []
    for turn, text in given:
        artefact, error = parse_response(track, text)
        outcome = await run_artefact(executor, case, artefact, error)
        made.append((case, turn, Attempt(turn.id, 0, 0, "", Response(text), None, artefact, outcome)))
    gathered = zip(made, gather_all(track, made), strict=True)
    values = [track.values(case, turn, [attempt], evidence) for (_, turn, attempt), evidence in gathered]
    scored = runner.run(values)
    if failed is not None:
        failed += [f"the metric '{found.metric}' failed: {found.message[:200]}" for found in scored.failures]
    plain = scored.plain.get(track.primary_metric, [])
    return [(attempt.outcome, bool(right)) for (_, _, attempt), right in zip(made, plain, strict=True)]

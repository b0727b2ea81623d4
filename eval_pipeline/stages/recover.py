"""Recovery attempts: another try at what did not run, with the error shown."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial

from eval_pipeline.asking.calls import Caller, Counters
from eval_pipeline.core.interrupts import run_interruptibly
from eval_pipeline.core.model import Attempt, CallErrorKind, Failed, Partition
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.stages.attempts.ask import Asked, Asker, first_question, own_answer, prefix_uses, recovery_question
from eval_pipeline.stages.attempts.model_calls import ask_together, asking_facts, open_caller, provider_for
from eval_pipeline.stages.attempts.rows import keep_attempts, load_attempts
from eval_pipeline.stages.attempts.sink import AttemptSink
from eval_pipeline.stages.attempts.spending import REFUSED
from eval_pipeline.stages.attempts.units import Unit
from eval_pipeline.stages.generate import (
    closing_failed,
    note_later_run,
    prompt_version,
    unanswered,
)
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import CASES, GENERATIONS, RECOVERY_ATTEMPTS, RECOVERY_PROMPTS
from eval_pipeline.tracks.base import Track
from eval_pipeline.workspace.lineage import content_hashes
from eval_pipeline.workspace.planned import recorded_epoch
from eval_pipeline.workspace.runs import RUNNING, RunContext, partition_lock, record_run
from eval_pipeline.workspace.workspace import Progress, StageResult, Workspace

VERSION = "2"
TABLES = (RECOVERY_ATTEMPTS, RECOVERY_PROMPTS)


@dataclass(frozen=True, slots=True)
class Broken:
    """A turn, alone in its unit, whose generation did not run."""

    unit: Unit
    attempt: Attempt
    own_answers: Mapping[str, str] | None


def recover(workspace: Workspace, partition: Partition, run: RunContext, progress: Progress) -> StageResult:
    """Asks again, up to `max_recovery_attempts` times, where executing the generation failed.

    Wrong but running answers and generations whose call failed are left alone, and so are recorded predictions.
    """
    with partition_lock(workspace, partition, progress):
        return _recover_partition(workspace, partition, run, progress)


def _recover_partition(workspace: Workspace, partition: Partition, run: RunContext, progress: Progress) -> StageResult:
    version = workspace.model_version(partition.model_version)
    track = workspace.track(partition.suite)
    key, record = RecordKey.of(partition), workspace.record
    run = replace(run, epoch=run.epoch or recorded_epoch(workspace, partition))
    made_from = _made_from(workspace, partition, run.epoch)
    reused = is_current(workspace, partition, run.epoch)
    counts = Counters()
    if not reused:
        note_later_run(workspace, partition, run.run_id)
        with closing_failed(workspace, partition, run.run_id, counts):
            provider = provider_for(workspace, version)
            broken = [] if provider.recorded else _broken_turns(workspace, partition, version)
            label = f"{partition.suite} · {partition.model_version} · recovery"
            progress.start(label, len(broken))
            results: list[list[Asked]] = [[] for _ in broken]
            if broken:
                opening = open_caller(workspace, partition, run, provider, counts, progress)
                advance = partial(progress.advance, label)
                run_interruptibly(_recover_all(opening, partition.suite, version, track, broken, results, advance))
            if counts.refused:  # so that the file is not current, and the next run makes what the budget did not allow
                made_from = {**made_from, REFUSED: str(counts.refused)}
            with ExitStack() as stack:
                writers = [stack.enter_context(record.writer(table, key, made_from)) for table in TABLES]
                sink = AttemptSink(track, version, provider.simulated, *writers)
                for item, asked in zip(broken, results, strict=True):
                    for result in asked:
                        sink.add(item.unit.case, item.unit.turns[0], result)
                sink.flush()
            keep_attempts(workspace, partition, RECOVERY_ATTEMPTS, sink.made)
            progress.finish(label)
        record_run(workspace, partition, run.run_id, counts, status=RUNNING, finished_at=None)
    header = record.header(RECOVERY_ATTEMPTS, key)
    assert header is not None
    return StageResult(
        header.rows, header.content_hash, reused, {"attempts": header.rows} | asking_facts(version, counts)
    )


def is_current(workspace: Workspace, partition: Partition, epoch: str) -> bool:
    """Whether the record holds what `recover` would make; calls that failed and may succeed now are asked again."""
    epoch = epoch or recorded_epoch(workspace, partition)
    made_from, key = _made_from(workspace, partition, epoch), RecordKey.of(partition)
    made = all(workspace.record.is_current(table, key, made_from) for table in TABLES)
    return made and not unanswered(workspace, RECOVERY_ATTEMPTS, key)


def _made_from(workspace: Workspace, partition: Partition, epoch: str) -> Mapping[str, str]:
    versions = workspace.track(partition.suite).versions
    made_from = content_hashes(workspace.record, partition, (CASES, GENERATIONS))
    return made_from | {
        "epoch": epoch,
        "stage": VERSION,
        "parser": versions["parser"],
        "executor": versions["executor"],
    }


def _broken_turns(workspace: Workspace, partition: Partition, version: ModelVersion) -> list[Broken]:
    """The turns to recover, with the conversation as it stood at each."""
    track = workspace.track(partition.suite)
    made = (attempt for _, attempt in load_attempts(workspace, partition, GENERATIONS))
    attempts = {(attempt.turn_id, attempt.sample): attempt for attempt in made}
    broken = []
    for case in workspace.cases(partition.suite):
        for sample in range(version.samples_per_turn):
            own: dict[str, str] | None = {} if version.history == "own" else None
            for turn in case.turns:
                attempt = attempts.get((turn.id, sample))
                if attempt is None:
                    continue
                if isinstance(attempt.outcome, Failed):
                    unit = Unit(case, (turn,), sample)
                    broken.append(Broken(unit, attempt, None if own is None else dict(own)))
                if own is not None:
                    own[turn.id] = own_answer(track, attempt)
    return broken


async def _recover_all(
    opening: AbstractAsyncContextManager[Caller],
    suite: str,
    version: ModelVersion,
    track: Track,
    broken: Sequence[Broken],
    results: list[list[Asked]],
    advance: Callable[[int], None],
) -> None:
    async with opening as caller, track.executor() as executor:
        uses = prefix_uses(track, ((item.unit.case, 1) for item in broken))
        asker = Asker(track, suite, caller, executor, uses, recorded=False)

        async def ask(placed: Sequence[tuple[int, Broken]]) -> None:
            for (place, _), asked in zip(placed, await _recover(asker, version, [b for _, b in placed]), strict=True):
                results[place] = asked
                advance(1)

        await ask_together(enumerate(broken), len(broken), version, caller, executor, ask)


async def _recover(asker: Asker, version: ModelVersion, broken: Sequence[Broken]) -> list[list[Asked]]:
    """Recovers turns side by side: the first attempt at each, then the second ones of those still broken."""
    track, prompts = asker.track, prompt_version(version, asker.track)
    firsts = [first_question(track, item.unit, item.unit.turns[0], item.own_answers, prompts) for item in broken]
    waiting = [(place, item.attempt) for place, item in enumerate(broken)]
    asked: list[list[Asked]] = [[] for _ in broken]
    for _ in range(version.max_recovery_attempts):
        results = await asker.attempts([recovery_question(firsts[place], before) for place, before in waiting])
        failed = []
        for (place, _before), result in zip(waiting, results, strict=True):
            attempt = result.attempt
            if attempt.call_failure is not None and attempt.call_failure.kind is CallErrorKind.BUDGET:
                continue  # an attempt that is not made
            asked[place].append(result)
            if isinstance(attempt.outcome, Failed):
                failed.append((place, attempt))
        waiting = failed
        if not waiting:
            break
    return asked

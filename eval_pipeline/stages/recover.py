"""The stage `recovery_attempts`: asks again, with the error shown, where an answer could not be executed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from eval_pipeline.core.interrupts import run_interruptibly
from eval_pipeline.core.model import Attempt, CallErrorKind, Failed, Json
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Provider
from eval_pipeline.stages.attempts.ask import Asked, Asker, first_question, own_answer, recovery_question
from eval_pipeline.stages.attempts.model_calls import answers_code, ask_together, asking_facts, open_asker, provider_for
from eval_pipeline.stages.attempts.rows import load_attempts
from eval_pipeline.stages.attempts.sink import AttemptSink
from eval_pipeline.stages.attempts.spending import REFUSED
from eval_pipeline.stages.attempts.units import Unit
from eval_pipeline.stages.generate import prompt_version, unanswered
from eval_pipeline.store.tables import GENERATIONS, RECOVERY_ATTEMPTS, RECOVERY_PROMPTS
from eval_pipeline.tracks.capabilities import Recovers
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs
from eval_pipeline.workspace.planned import note_later_run, recorded_epoch

TABLES = (RECOVERY_ATTEMPTS, RECOVERY_PROMPTS)


@dataclass(frozen=True, slots=True)
class Broken:
    """A turn whose first answer could not be executed, in a unit of its own."""

    unit: Unit
    attempt: Attempt
    own_answers: Mapping[str, str] | None


def recover(inputs: Inputs, outputs: Outputs) -> dict[str, Json]:
    """Asks again, up to `max_recovery_attempts` times, if executing the first answer failed.

    Answers that ran but are wrong, failed calls and recorded predictions are left alone.
    """
    provider = provider_for(inputs.workspace, inputs.version, asks=inputs.run.asks)
    broken = [] if provider.recorded or not isinstance(inputs.track, Recovers) else _broken_turns(inputs)
    label = inputs.label("recovery")
    inputs.progress.start(label, len(broken))
    results: list[list[Asked]] = [[] for _ in broken]
    if broken:
        run_interruptibly(_recover_all(inputs, provider, broken, results, partial(inputs.progress.advance, label)))
    if inputs.counts.refused:  # makes the next run repeat this stage
        outputs.unlike(REFUSED, str(inputs.counts.refused))
    sink = AttemptSink(inputs, outputs, TABLES, provider.simulated)
    for item, asked in zip(broken, results, strict=True):
        for result in asked:
            sink.add(item.unit.case, item.unit.turns[0], result)
    sink.flush()
    outputs.keep((RECOVERY_ATTEMPTS,), sink.made)
    inputs.progress.finish(label)
    return asking_facts(inputs)


def prepare_recovering(inputs: Inputs) -> Inputs:
    """Fixes the freshness epoch: the run's, or else that of the generations."""
    epoch = inputs.run.epoch or recorded_epoch(inputs.workspace, inputs.place)
    return inputs.anew(run=replace(inputs.run, epoch=epoch))


def note_recovering(inputs: Inputs) -> None:
    """Adds a run that continues from another run's generations to `runs`."""
    note_later_run(inputs.workspace, inputs.place, inputs.run.run_id)


def recovering_settings(inputs: Inputs) -> dict[str, str]:
    """Returns what decides the result in addition to the generations, whose settings cover the rest."""
    return {"epoch": inputs.run.epoch, "answers": answers_code(inputs)}


def recovering_facts(inputs: Inputs) -> dict[str, Json]:
    """Returns the number of attempts, and facts about the calls."""
    header = inputs.header(RECOVERY_ATTEMPTS)
    return {"attempts": header.rows if header else 0, **asking_facts(inputs)}


def unrecovered(inputs: Inputs) -> bool:
    """Whether asking again may help."""
    return unanswered(inputs, RECOVERY_ATTEMPTS)


def _broken_turns(inputs: Inputs) -> list[Broken]:
    """Returns the turns to recover, each with the conversation before it."""
    attempts = {(made.turn_id, made.sample): made for _, made in load_attempts(inputs, GENERATIONS)}
    broken = []
    for case in inputs.cases:
        for sample in range(inputs.version.samples_per_turn):
            own: dict[str, str] | None = {} if inputs.version.history == "own" else None
            for turn in case.turns:
                attempt = attempts.get((turn.id, sample))
                if attempt is None:
                    continue
                if isinstance(attempt.outcome, Failed):
                    unit = Unit(case, (turn,), sample)
                    broken.append(Broken(unit, attempt, None if own is None else dict(own)))
                if own is not None:
                    own[turn.id] = own_answer(inputs.track, attempt)
    return broken


async def _recover_all(
    inputs: Inputs,
    provider: Provider,
    broken: Sequence[Broken],
    results: list[list[Asked]],
    advance: Callable[[int], None],
) -> None:
    version = inputs.version
    async with open_asker(inputs, provider, ((item.unit.case, 1) for item in broken)) as asker:

        async def ask(placed: Sequence[tuple[int, Broken]]) -> None:
            for (place, _), asked in zip(placed, await _recover(asker, version, [b for _, b in placed]), strict=True):
                results[place] = asked
                advance(1)

        await ask_together(enumerate(broken), len(broken), version, asker, ask)


async def _recover(asker: Asker, version: ModelVersion, broken: Sequence[Broken]) -> list[list[Asked]]:
    """Recovers turns concurrently: the first recovery attempt for each, then the second for those still failing."""
    track, prompts = asker.track, prompt_version(version, asker.track)
    assert isinstance(track, Recovers)
    firsts = [first_question(track, item.unit, item.unit.turns[0], item.own_answers, prompts) for item in broken]
    waiting = [(place, item.attempt) for place, item in enumerate(broken)]
    asked: list[list[Asked]] = [[] for _ in broken]
    for _ in range(version.max_recovery_attempts):
        results = await asker.attempts([recovery_question(track, firsts[place], before) for place, before in waiting])
        failed = []
        for (place, _before), result in zip(waiting, results, strict=True):
            attempt = result.attempt
            if attempt.call_failure is not None and attempt.call_failure.kind is CallErrorKind.BUDGET:
                continue  # the budget refused the attempt
            asked[place].append(result)
            if isinstance(attempt.outcome, Failed):
                failed.append((place, attempt))
        waiting = failed
        if not waiting:
            break
    return asked

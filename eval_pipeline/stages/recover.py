"""The stage `recovery_attempts`: asks again, with the error shown, where an answer could not be executed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from eval_pipeline.core.model import Attempt, CallErrorKind, Failed, Json
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.system.interrupts import run_interruptibly
from eval_pipeline.providers.base import Provider
from eval_pipeline.stages.attempts.ask import AskedAttempt, Asker, first_question, own_answer, recovery_question
from eval_pipeline.stages.attempts.asked import RECOVERED, prompting
from eval_pipeline.stages.attempts.model_calls import ask_together, asking_facts, open_asker, provider_for
from eval_pipeline.stages.attempts.rows import load_attempts
from eval_pipeline.stages.attempts.sink import AttemptSink, Ordered
from eval_pipeline.stages.attempts.so_far import SoFar, watched
from eval_pipeline.stages.attempts.units import AskingUnit
from eval_pipeline.stages.spending import REFUSED
from eval_pipeline.store.tables import GENERATIONS, RECOVERY_ATTEMPTS
from eval_pipeline.tracks.capabilities import Recovers
from eval_pipeline.tracks.texts.prompt_parts import Prompting
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs
from eval_pipeline.workspace.watching.status import RECOVERY

FAILED = "failed"
"""The outcome of attempts that could not be executed."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A turn whose first answer could not be executed, in a unit of its own.

    Attributes:
        attempt: the first answer.
        own_answers: turn id → the model's own answer, where it is shown those; None where it is shown the gold.
    """

    unit: AskingUnit
    attempt: Attempt
    own_answers: Mapping[str, str] | None


def recover(inputs: Inputs, outputs: Outputs) -> dict[str, Json]:
    """Asks again, up to `max_recovery_attempts` times, if executing the first answer failed.

    Answers that ran but are wrong, failed calls and recorded predictions are left alone.
    """
    provider = provider_for(inputs.workspace, inputs.version, asks=inputs.run.asks)
    recovers = not provider.recorded and isinstance(inputs.track, Recovers)
    count, label = _count_broken(inputs) if recovers else 0, inputs.label("recovery")
    inputs.progress.start(label, count)
    sink = AttemptSink(inputs, outputs, RECOVERED, provider.simulated, keeps=inputs.is_small)
    if count:
        with watched(inputs, RECOVERY, count) as so_far:
            run_interruptibly(_recover_all(inputs, provider, count, Ordered(sink), so_far), inputs.run.beat)
    if inputs.counts.refused:  # makes the next run repeat this stage
        outputs.unlike(REFUSED, str(inputs.counts.refused))
    sink.flush()
    if sink.made is not None:
        outputs.keep((RECOVERY_ATTEMPTS,), sink.made)
    inputs.progress.finish(label)
    return asking_facts(inputs)


def recovering_facts(inputs: Inputs) -> dict[str, Json]:
    """Returns the number of attempts, and facts about the calls."""
    header = inputs.header(RECOVERY_ATTEMPTS)
    return {"attempts": header.rows if header else 0, **asking_facts(inputs)}


def _count_broken(inputs: Inputs) -> int:
    groups = inputs.rows_within(GENERATIONS, ["outcome"])
    return sum(pc.sum(pc.equal(group["outcome"], FAILED)).as_py() or 0 for group in groups)


def _broken_cases(inputs: Inputs) -> set[str]:
    groups = inputs.rows_within(GENERATIONS, ["case_id", "outcome"])
    return {
        case for group in groups for case in group.filter(pc.equal(group["outcome"], FAILED))["case_id"].to_pylist()
    }


def _broken_turns(inputs: Inputs) -> Iterator[Broken]:
    """Yields the turns to recover, each with the conversation before it."""
    for part in inputs.parts():
        own_history = inputs.version.history == "own"
        attempts = {
            (made.turn_id, made.sample): made
            for _, made in load_attempts(part, GENERATIONS, None if own_history else FAILED)
        }
        for case in part.cases if own_history else part.cases_with(_broken_cases(part)):
            for sample in range(inputs.version.samples_per_turn):
                own: dict[str, str] | None = {} if own_history else None
                for turn in case.turns:
                    attempt = attempts.get((turn.id, sample))
                    if attempt is None:
                        continue
                    if isinstance(attempt.outcome, Failed):
                        unit = AskingUnit(case, (turn,), sample)
                        yield Broken(unit, attempt, None if own is None else dict(own))
                    if own is not None:
                        own[turn.id] = own_answer(inputs.track, attempt)


async def _recover_all(inputs: Inputs, provider: Provider, count: int, ordered: Ordered, so_far: SoFar) -> None:
    version, prompts = inputs.version, prompting(inputs.workspace, inputs.suite, inputs.version)
    label = inputs.label("recovery")
    async with open_asker(inputs, provider, ((item.unit.case, 1) for item in _broken_turns(inputs))) as asker:

        async def ask(placed: Sequence[tuple[int, Broken]]) -> None:
            recovered = await _recover(asker, version, [b for _, b in placed], prompts)
            for (place, item), asked in zip(placed, recovered, strict=True):
                made = [(item.unit.turns[0], one) for one in asked]
                ordered.put(place, item.unit.case, made)
                so_far.add(item.unit.case, made, finished=1)
                inputs.progress.advance(label)

        await ask_together(enumerate(_broken_turns(inputs)), count, version, asker, ask)


async def _recover(
    asker: Asker, version: ModelVersion, broken: Sequence[Broken], prompts: Prompting
) -> list[list[AskedAttempt]]:
    """Recovers turns concurrently: the first recovery attempt for each, then the second for those still failing."""
    track = asker.track
    assert isinstance(track, Recovers)
    firsts = [first_question(track, item.unit, item.unit.turns[0], item.own_answers, prompts) for item in broken]
    waiting = [(place, item.attempt) for place, item in enumerate(broken)]
    asked: list[list[AskedAttempt]] = [[] for _ in broken]
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

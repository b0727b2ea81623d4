"""The stage `generations`: makes, executes and records the first attempt at every turn."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice

from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import Json
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.system.interrupts import run_interruptibly
from eval_pipeline.providers.base import Provider
from eval_pipeline.providers.standins.inprocess import Immediate
from eval_pipeline.stages.attempts.ask import AskedAttempt, Asker, call_of, first_question, own_answer
from eval_pipeline.stages.attempts.asked import GENERATED, cases_of, prompting, size_in_scope, turns_planned
from eval_pipeline.stages.attempts.canary import FEW_LEFT, Canary, CanaryResult, draw
from eval_pipeline.stages.attempts.model_calls import ask_together, asking_facts, open_asker, provider_for, singly
from eval_pipeline.stages.attempts.sink import AttemptSink, Ordered, register_model_version
from eval_pipeline.stages.attempts.so_far import SoFar, watched
from eval_pipeline.stages.attempts.units import AskingUnit, Units, turn_by_turn
from eval_pipeline.store.tables import GENERATIONS
from eval_pipeline.tracks.texts.prompt_parts import Prompting
from eval_pipeline.workspace.asked.ranges import is_small
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs
from eval_pipeline.workspace.watching.status import ASKING

_LOOKED_UP = 1_000
"""Number of units looked up in the journal at once."""


def generate(inputs: Inputs, outputs: Outputs) -> dict[str, Json]:
    """Asks the model version every turn in scope and records prompts, responses, artefacts and outcomes.

    Responses in the journal are not asked for again.

    Raises:
        FatalCallError: no call can succeed.
        CanaryError: hardly any of the first answers can be read.
        EvalError: nobody may be asked, and the journal lacks responses.
    """
    provider = provider_for(inputs.workspace, inputs.version, asks=inputs.run.asks)
    # Of a large suite that is asked as a whole, cases are read when they are needed.
    read = inputs.each_case if inputs.scope.is_full else partial(cases_of, inputs)
    label, units = inputs.label("generations"), Units(read, inputs.version, *size_in_scope(inputs))
    inputs.progress.start(label, units.turns)
    sink = AttemptSink(inputs, outputs, GENERATED, provider.simulated, keeps=is_small(units.turns))
    with watched(inputs, ASKING, units.turns) as so_far:
        run_interruptibly(_ask_all(inputs, provider, units, Ordered(sink), so_far), inputs.run.beat)
    if inputs.counts.refused and not inputs.run.asks:
        raise EvalError(
            f"{inputs.counts.refused} turns would have to be asked again: their prompts are not those that were "
            f"answered, or the journal has lost the answers; `eval-pipeline run` asks them"
        )
    register_model_version(inputs.workspace, inputs.version, provider)
    sink.flush()
    if sink.made is not None:
        outputs.keep((GENERATIONS,), sink.made)
    inputs.progress.finish(label)
    return asking_facts(inputs)


def generating_facts(inputs: Inputs) -> dict[str, Json]:
    """Returns the number of turns to be asked, and facts about the calls."""
    return {"turns": turns_planned(inputs), **asking_facts(inputs)}


async def _ask_all(inputs: Inputs, provider: Provider, units: Units, ordered: Ordered, so_far: SoFar) -> None:
    version, label = inputs.version, inputs.label("generations")
    prompts = prompting(inputs.workspace, inputs.suite, version)
    places = draw(units, inputs.suite, version) if _has_canary(inputs, provider) else frozenset[int]()
    canary = Canary(inputs.track, units, places)
    async with open_asker(inputs, provider, ((unit.case, len(unit.turns)) for unit in units)) as asker:
        alone = singly(asker)

        async def ask(placed: Sequence[tuple[int, AskingUnit]]) -> None:
            first = placed[0][0] in places
            if not first:
                await canary.passed()
            asked = await _ask_units(alone if first else asker, version, [unit for _, unit in placed], prompts)
            for (place, unit), results in zip(placed, asked, strict=True):
                made = list(zip(unit.turns, results, strict=True))
                ordered.put(place, unit.case, made)
                so_far.add(unit.case, made, finished=len(made))
                inputs.progress.advance(label, len(made))
                if first:
                    _heed(canary, place, results, asker, version, units, prompts)

        def order(*, drawn: bool) -> Iterator[tuple[int, AskingUnit]]:
            placed = turn_by_turn(units, units.cases, version.concurrency)
            return ((place, unit) for place, unit in placed if (place in places) == drawn)

        first_drawn = chain(order(drawn=True) if places else (), order(drawn=False))
        await ask_together(first_drawn, len(units), version, asker, ask)


def _has_canary(inputs: Inputs, provider: Provider) -> bool:
    """Whether a canary is used: only if asking costs money or time."""
    return inputs.run.asks and inputs.run.canary and not isinstance(provider, Immediate)


def _heed(
    canary: Canary,
    place: int,
    results: Sequence[AskedAttempt],
    asker: Asker,
    version: ModelVersion,
    units: Units,
    prompts: Prompting,
) -> None:
    """Lets the rest be asked, or stops the run by raising CanaryError."""
    said = canary.add(place, [result.attempt for result in results])
    if said is CanaryResult.BAD and _left_to_ask(
        asker, (u for p, u in enumerate(units) if p not in canary.places), prompts
    ):
        raise canary.error(version, units.turns)
    if said is not CanaryResult.OPEN:
        canary.pass_on()


def _left_to_ask(asker: Asker, units: Iterator[AskingUnit], prompts: Prompting) -> bool:
    """Whether many of the units are not in the journal yet; for those that are, nothing can be saved any more."""
    left = 0
    while left <= FEW_LEFT and (some := list(islice(units, _LOOKED_UP))):
        # For conversations with their own history, the first turn stands for all.
        questions = [first_question(asker.track, unit, unit.turns[0], None, prompts) for unit in some]
        calls = [call_of(asker.track, asker.suite, question, asker.prefix_uses, asker.code) for question in questions]
        known = asker.caller.known(calls)
        left += sum(len(unit.turns) for unit, is_known in zip(some, known, strict=True) if not is_known)
    return left > FEW_LEFT


async def _ask_units(
    asker: Asker, version: ModelVersion, units: Sequence[AskingUnit], prompts: Prompting
) -> list[list[AskedAttempt]]:
    """Asks units concurrently: the first turns of all units, then the second turns, and so on."""
    asked: list[list[AskedAttempt]] = [[] for _ in units]
    own: list[dict[str, str] | None] = [{} if version.history == "own" else None for _ in units]
    for number in range(max(len(unit.turns) for unit in units)):
        places = [place for place, unit in enumerate(units) if number < len(unit.turns)]
        going = ((units[place], own[place]) for place in places)
        questions = [first_question(asker.track, unit, unit.turns[number], mine, prompts) for unit, mine in going]
        for place, result in zip(places, await asker.attempts(questions), strict=True):
            if (answers := own[place]) is not None:
                answers[result.attempt.turn_id] = own_answer(asker.track, result.attempt)
            asked[place].append(result)
    return asked

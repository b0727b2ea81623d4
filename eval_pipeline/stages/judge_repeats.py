"""Asking the judge the same again: how far it agrees with itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from eval_pipeline.asking.answers import utc_today
from eval_pipeline.asking.budgets import Budget
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.interrupts import run_interruptibly
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.judge import SQL_MEANING, Judge, Judgement, open_judge, why_no_judge
from eval_pipeline.stages.attempts.model_calls import run_together
from eval_pipeline.stages.judging import Place, judge_version, pairs_of
from eval_pipeline.statistics import SelfAgreement, self_agreement
from eval_pipeline.store.tables import JUDGE_REPEATS
from eval_pipeline.tracks.capabilities import Judged, ToJudge
from eval_pipeline.workspace.inputs import Inputs

_WORKERS = 8
_CHOICES = tuple(SQL_MEANING.choices)


@dataclass(frozen=True, slots=True)
class Repeated:
    """What asking again showed.

    Attributes:
        judge: who was asked.
        agreement: over the pairs that the judge answered every time.
        failures: answers that did not come, those not asked for among them.
        budget_reached: the limits of the judge's model version let some not be asked for.
    """

    judge: str
    agreement: SelfAgreement
    failures: int
    budget_reached: bool


def repeat_judging(inputs: Inputs, repeats: int, most: int) -> Repeated:
    """Asks the judge of an evaluation about the same pairs several times, and adds what it says to the record.

    Nothing is taken from its cache, nor put there. What all of it takes stays within `max_cost_usd` and
    `max_tokens_total` of the model version that judges, as in a run.

    Args:
        inputs: of the evaluation.
        repeats: how often, at least twice.
        most: pairs at most; drawn at random, the same ones each time.

    Raises:
        UsageError: the suite has no judge that can be asked, or nothing for it.
        FatalCallError: the judge can answer no question.
    """
    version = judge_version(inputs.workspace, inputs.suite)
    if why := why_no_judge(version) if isinstance(inputs.track, Judged) else "its track has none":
        raise UsageError(f"suite '{inputs.suite}' has no judge to be asked: {why}")
    pairs = _drawn(inputs, most)
    if not pairs:
        raise UsageError(f"{inputs.place}: there is no answer that a judge would be asked about")
    budget = Budget(version, today=utc_today)
    said = [run_interruptibly(_ask(version, [pair for _, pair in pairs], budget)) for _ in range(repeats)]
    made_from = {"repeats": json_hash([[one.choice for one in once] for once in said])}
    with inputs.record.writer(JUDGE_REPEATS, inputs.key(JUDGE_REPEATS), made_from) as writer:
        rows = [
            _row(place, number, once[index])
            for number, once in enumerate(said)
            for index, (place, _) in enumerate(pairs)
        ]
        writer.write({column.name: [row[column.name] for row in rows] for column in JUDGE_REPEATS.columns})
    clusters = {case.id: case.cluster for case in inputs.cases}
    return _repeated(said, [clusters[place[1]] for place, _ in pairs], budget_reached=budget.reached)


def _drawn(inputs: Inputs, most: int) -> list[tuple[Place, ToJudge]]:
    """Pairs that are open, each once: equal ones would agree by more than the judge does."""
    found = {(pair.generated, pair.expected): (place, pair) for place, pair in pairs_of(inputs) if pair.settled is None}
    pairs = list(found.values())
    return pairs if len(pairs) <= most else Random(0).sample(pairs, most)


async def _ask(version: ModelVersion, pairs: Sequence[ToJudge], budget: Budget) -> list[Judgement]:
    said: dict[int, Judgement] = {}
    queue = iter(range(len(pairs)))

    async def work(judge: Judge) -> None:
        for place in queue:
            pair = pairs[place]
            said[place] = await judge.judge(pair.generated, pair.expected, pair.schema)

    async with open_judge(version, None, budget=budget) as judge:  # a new one each time: it remembers what it said
        await run_together([work(judge) for _ in range(min(_WORKERS, len(pairs)))])
    return [said[place] for place in range(len(pairs))]


def _row(place: Place, number: int, said: Judgement) -> dict[str, object]:
    turn_id, case_id, turn_index, sample = place
    return {
        "turn_id": turn_id,
        "case_id": case_id,
        "turn_index": turn_index,
        "sample": sample,
        "repeat": number,
        "value": None if said.error is not None else said.value,
        "choice": said.choice or None,
        "reason": said.reason or None,
        "error": said.error,
        "model": said.model or None,
        "prompt_version": said.prompt_version or None,
        "input_tokens": said.usage.input_tokens,
        "output_tokens": said.usage.output_tokens,
    }


def _repeated(said: Sequence[Sequence[Judgement]], clusters: Sequence[str], *, budget_reached: bool) -> Repeated:
    whole = [index for index in range(len(clusters)) if all(once[index].error is None for once in said)]
    ratings = np.array([[_CHOICES.index(once[index].choice) for once in said] for index in whole], dtype=np.int64)
    codes = {name: code for code, name in enumerate(dict.fromkeys(clusters))}
    found = self_agreement(ratings.reshape(len(whole), len(said)), [codes[clusters[index]] for index in whole])
    failures = sum(one.error is not None for once in said for one in once)
    return Repeated(said[0][0].model, found, failures, budget_reached)

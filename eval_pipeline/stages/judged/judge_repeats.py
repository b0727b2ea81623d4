"""Asks the judge about the same pairs repeatedly, to measure its agreement with itself."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from random import Random

import numpy as np

from eval_pipeline.asking.answers import utc_today
from eval_pipeline.asking.budgets import Budget
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.system.interrupts import run_interruptibly
from eval_pipeline.judge.judge import open_judge
from eval_pipeline.judge.judgement import Judge, Judgement, why_no_judge
from eval_pipeline.judge.prompt import JudgePrompt
from eval_pipeline.stages.attempts.model_calls import run_together
from eval_pipeline.stages.judged.judging import Place, pairs_of, prompt_of
from eval_pipeline.stages.spending import judge_version, open_purse
from eval_pipeline.statistics.raters.agreement import SelfAgreement, self_agreement
from eval_pipeline.store.tables import JUDGE_REPEATS
from eval_pipeline.tracks.capabilities import Judged, ToJudge
from eval_pipeline.workspace.inputs import Inputs

_WORKERS = 8


@dataclass(frozen=True, slots=True)
class Repeated:
    """The result of asking repeatedly.

    Attributes:
        judge: the model that was asked.
        agreement: over the pairs that the judge answered every time.
        failures: number of missing answers, including those not asked for.
        budget_reached: whether the judge's budget prevented some questions.
    """

    judge: str
    agreement: SelfAgreement
    failures: int
    budget_reached: bool


def repeat_judging(inputs: Inputs, repeats: int, most: int) -> Repeated:
    """Asks the judge of an evaluation about the same pairs several times, and records its answers.

    The judge's cache is neither read nor written. The total cost stays within `max_cost_usd` and `max_tokens_total` of
    the judging model version, as in a run.

    Args:
        inputs: the evaluation.
        repeats: number of repetitions, at least 2.
        most: maximum number of pairs; drawn at random, always the same ones.

    Raises:
        UsageError: the suite has no judge that can be asked, or nothing to judge.
        FatalCallError: the judge can answer no question.
    """
    version = judge_version(inputs.workspace, inputs.suite)
    if why := why_no_judge(version) if isinstance(inputs.track, Judged) else "its track has none":
        raise UsageError(f"suite '{inputs.suite}' has no judge to be asked: {why}")
    pairs = _drawn(inputs, most)
    if not pairs:
        raise UsageError(f"{inputs.suite} · {inputs.version.name}: there is no answer for a judge to grade")
    budget, prompt = Budget(version, purse=open_purse(inputs, version), today=utc_today), prompt_of(inputs)
    asked = [pair for _, pair in pairs]
    with closing(budget):
        said = run_interruptibly(_ask_repeatedly(version, prompt, asked, budget, repeats))
    made_from = {"repeats": json_hash([[one.choice for one in once] for once in said])}
    with inputs.record.writer(JUDGE_REPEATS, inputs.key(JUDGE_REPEATS), made_from) as writer:
        rows = [
            _row(place, number, once[index])
            for number, once in enumerate(said)
            for index, (place, _) in enumerate(pairs)
        ]
        writer.write({column.name: [row[column.name] for row in rows] for column in JUDGE_REPEATS.columns})
    clusters = {case.id: case.cluster for case in inputs.cases}
    of_pairs, choices = [clusters[place[1]] for place, _ in pairs], tuple(prompt.choices)
    return _repeated(said, choices, of_pairs, budget_reached=budget.reached)


def _drawn(inputs: Inputs, most: int) -> list[tuple[Place, ToJudge]]:
    """Draws pairs that only a judge can decide, each once: duplicates would inflate the agreement."""
    found = {
        (pair.generated, pair.expected, pair.schema): (place, pair)
        for place, pair in pairs_of(inputs)
        if pair.settled is None
    }
    pairs = list(found.values())
    return pairs if len(pairs) <= most else Random(0).sample(pairs, most)


async def _ask_repeatedly(
    version: ModelVersion, prompt: JudgePrompt, pairs: Sequence[ToJudge], budget: Budget, repeats: int
) -> list[list[Judgement]]:
    return [await _ask(version, prompt, pairs, budget) for _ in range(repeats)]


async def _ask(version: ModelVersion, prompt: JudgePrompt, pairs: Sequence[ToJudge], budget: Budget) -> list[Judgement]:
    said: dict[int, Judgement] = {}
    queue = iter(range(len(pairs)))

    async def work(judge: Judge) -> None:
        for place in queue:
            pair = pairs[place]
            said[place] = await judge.judge(pair.generated, pair.expected, pair.schema)

    async with open_judge(
        version, None, prompt=prompt, budget=budget
    ) as judge:  # a new judge each time, as it caches its answers
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


def _repeated(
    said: Sequence[Sequence[Judgement]], choices: Sequence[str], clusters: Sequence[str], *, budget_reached: bool
) -> Repeated:
    whole = [index for index in range(len(clusters)) if all(once[index].error is None for once in said)]
    ratings = np.array([[choices.index(once[index].choice) for once in said] for index in whole], dtype=np.int64)
    codes = {name: code for code, name in enumerate(dict.fromkeys(clusters))}
    found = self_agreement(ratings.reshape(len(whole), len(said)), [codes[clusters[index]] for index in whole])
    failures = sum(one.error is not None for once in said for one in once)
    return Repeated(said[0][0].model, found, failures, budget_reached)

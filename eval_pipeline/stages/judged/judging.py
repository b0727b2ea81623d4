"""The stage `judgements`: an LLM judge compares answers with the gold; rescoring reuses its recorded judgements."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from datetime import UTC, datetime
from itertools import chain

from eval_pipeline.asking.budgets import Budget
from eval_pipeline.asking.on_the_way import OnTheWay
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.core.model import Evidence, Json
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.system.interrupts import run_interruptibly
from eval_pipeline.judge.judgement import NO_JUDGE, OVER_BUDGET, Judge, Judgement, why_no_judge
from eval_pipeline.judge.prompt import SQL_MEANING, JudgePrompt
from eval_pipeline.providers.prices import cost_usd
from eval_pipeline.stages.attempts.model_calls import calls_told, run_together
from eval_pipeline.stages.attempts.rows import attempted_turns
from eval_pipeline.stages.attempts.so_far import made_again
from eval_pipeline.stages.evidence import load_evidence
from eval_pipeline.stages.scoring.gold import gold_failure, gold_problems
from eval_pipeline.stages.settings import JUDGE_PROMPT
from eval_pipeline.stages.spending import (
    judge_budget,
    judge_version,
    limit_facts,
    limit_reached,
    limit_told,
    record_judge_spending,
)
from eval_pipeline.store.tables import CASES, JUDGEMENTS
from eval_pipeline.tracks.abilities import measured_kinds_of
from eval_pipeline.tracks.capabilities import Judged, ToJudge
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs
from eval_pipeline.workspace.watching.status import JUDGING, Status

KIND = "judgement"
"""The kind under which metrics receive judgements as evidence."""
_SETTLED = "settled"
open_judge: Callable[..., Judge] = Later("eval_pipeline.judge.judge:open_judge")
"""Loaded where there is a question to ask."""
_WORKERS = 64

Place = tuple[str, str, int, int]
"""Turn id, case id, turn index, sample."""
Pair = tuple[str, str, str]
"""Turn id, generated and expected answer."""


def judge_answers(inputs: Inputs, outputs: Outputs) -> None:
    """Asks the judge to compare the final answer of every turn with its gold, and records its judgements.

    Raises:
        FatalCallError: the judge can answer no question (e.g. a wrong key or an unknown model).
        UsageError: only a judge can decide whether answers are correct, and there is none.
    """
    pairs = list(_pairs(inputs))
    version, today = judge_version(inputs.workspace, inputs.suite), datetime.now(UTC).date().isoformat()
    known = _known(inputs)
    said: list[Judgement] = []
    with closing(judge_budget(inputs, version)) as budget:
        try:
            judging = _judge_all(inputs, version, pairs, known, budget)
            said = [_as_refused(one) for one in run_interruptibly(judging, inputs.run.beat)]
        finally:
            record_judge_spending(inputs, budget, sum(judgement.reason == OVER_BUDGET for judgement in said))
    _refuse_undecided(inputs, version, said)
    header = inputs.header(JUDGEMENTS)
    if known and header and (asked_by := header.made_from.get(JUDGE_PROMPT)):
        outputs.unlike(JUDGE_PROMPT, asked_by)
    rows = outputs.rows(JUDGEMENTS)
    for (place, pair), judgement in zip(pairs, said, strict=True):
        usd = cost_usd(version, judgement.usage, today) if judgement.model and not judgement.cached else None
        rows.add(_row(place, pair, judgement) | {"usd": usd})


def judging_settings(inputs: Inputs) -> dict[str, str]:
    """Returns the judge, its question, and which pairs the suite's options leave out."""
    version = judge_version(inputs.workspace, inputs.suite)
    told = [version.provider, version.model, version.max_tokens, version.sampling, version.options]
    pairs = json_hash(inputs.options.get("judge"))
    asked_by = ("eval_pipeline.judge.classifier:classify", "eval_pipeline.judge.judge:LLMJudge")
    read = inputs.workspace.fingerprints.of(*asked_by).code
    prompt = prompt_of(inputs)
    question = f"{prompt.identity}/{read}"
    return {"judge": json_hash([told, prompt.version]), JUDGE_PROMPT: question, "pairs": pairs}


def judging_facts(inputs: Inputs) -> dict[str, Json]:
    """Returns the numbers of pairs, of questions asked, of calls, and of missing values and errors."""
    found = inputs.read(JUDGEMENTS, ["value", "error", "asked"])
    rows = found.num_rows
    facts: dict[str, Json] = {"rows": rows, "asked": sum(found["asked"].to_pylist())}
    facts |= {"without_value": found["value"].null_count, "errors": rows - found["error"].null_count}
    return facts | calls_told(inputs.counts) | limit_facts(inputs)


def not_all_judged(inputs: Inputs) -> bool:
    """Whether asking again may help: the judge failed, or no judge was available and now one is."""
    if not inputs.run.asks_judge or why_no_judge(judge_version(inputs.workspace, inputs.suite)):
        return False
    rows = inputs.read(JUDGEMENTS, ["reason", "error"]).to_pylist()
    return any(row["error"] is not None or row["reason"] in {NO_JUDGE, OVER_BUDGET} for row in rows)


def load_judgements(inputs: Inputs) -> Mapping[tuple[str, int], Sequence[Evidence]]:
    """Returns the judgements by turn and sample, as evidence, as `load_evidence`; empty for tracks without a judge."""
    if not isinstance(inputs.track, Judged):
        return {}
    found: defaultdict[tuple[str, int], list[Evidence]] = defaultdict(list)
    columns = ["turn_id", "sample", "value", "choice", "reason", "error", "trace", "model", "expected"]
    for row in chain.from_iterable(group.to_pylist() for group in inputs.rows_within(JUDGEMENTS, columns)):
        place = (row.pop("turn_id"), row.pop("sample"))
        found[place].append(Evidence(*place, KIND, row["choice"] or "", row["value"], row))
    return found


def pairs_of(inputs: Inputs) -> list[tuple[Place, ToJudge]]:
    """Returns what a judge would be shown for each scored turn and sample, including settled pairs."""
    return list(_pairs(inputs))


def prompt_of(inputs: Inputs) -> JudgePrompt:
    """Returns the question to the judge of the suite."""
    track = inputs.track
    return track.judge_prompt(inputs.options) if isinstance(track, Judged) else SQL_MEANING


def _refuse_undecided(inputs: Inputs, version: ModelVersion, said: Sequence[Judgement]) -> None:
    """Raises UsageError if turns that only a judge can decide have no verdict: they would all count as wrong."""
    undecided = sum(judgement.reason in {NO_JUDGE, OVER_BUDGET} for judgement in said)
    track = inputs.track
    if not undecided or not isinstance(track, Judged) or not track.judge_decides(inputs.options):
        return
    then = "the next run asks the judge only"
    if any(judgement.reason == OVER_BUDGET for judgement in said):
        limit = limit_reached(inputs)
        why = f"its budget of the run is reached ({limit or 'max_cost_usd, max_tokens_total of its model version'})"
        then = "the next run asks the judge for the rest, if it starts within 24 hours; or raise the budget"
    else:
        why = why_no_judge(version) if inputs.run.asks_judge else "it must not be asked; --ask-judge allows it"
    raise UsageError(
        f"{inputs.suite} · {inputs.version.name}: the judge '{version.name}' decides whether {undecided:,} of "
        f"{len(said):,} answers are correct, and gives no verdict: {why}. Answers are kept; {then}"
    )


def _as_refused(said: Judgement) -> Judgement:
    """Replaces a judgement that the budget did not allow by one without a value; others are returned unchanged.

    It is not a failure of the judge.
    """
    return Judgement(None, "", OVER_BUDGET) if said.error == OVER_BUDGET else said


def _pairs(inputs: Inputs) -> Iterator[tuple[Place, ToJudge]]:
    track = inputs.track
    assert isinstance(track, Judged)
    measured, problems = measured_kinds_of(track), gold_problems(inputs)
    for part in inputs.parts():
        evidence = load_evidence(part)
        for case, turn, sample, made in attempted_turns(part):
            found = [one for one in evidence.get((turn.id, sample), ()) if one.kind not in measured]
            unscored = turn.id in problems or gold_failure(found) is not None
            pair = None if unscored else track.to_judge(case, turn, made[-1][1], found)
            if pair is not None:
                yield (turn.id, case.id, turn.index, sample), pair


def _known(inputs: Inputs) -> dict[Pair, Judgement]:
    """Returns earlier judgements of the same judge on the same turns, answers and gold, however old.

    Judgements under another question count too, unless the user wants everything asked again.
    """
    header, same = inputs.header(JUDGEMENTS), judging_settings(inputs) | inputs.hashes((CASES,))
    again = inputs.run.exact and inputs.run.asks_judge
    names = ("judge", CASES.name, *([JUDGE_PROMPT] if again else []))
    if header is None or any(header.made_from.get(name) != same[name] for name in names):
        return {}
    return {
        (row["turn_id"], row["generated"], row["expected"]): Judgement(
            row["value"],
            row["choice"] or "",
            row["reason"] or "",
            model=row["model"],
            error=row["error"],
            trace=row["trace"],
            prompt_version=row["prompt_version"] or "",
            cached=True,
        )
        for row in inputs.read(JUDGEMENTS).to_pylist()
        if row["asked"] and (row["error"] is None or not inputs.run.asks_judge)
    }


async def _judge_all(
    inputs: Inputs,
    version: ModelVersion,
    pairs: Sequence[tuple[Place, ToJudge]],
    known: Mapping[Pair, Judgement],
    budget: Budget,
) -> list[Judgement]:
    """Returns the judgement for each pair, in order; the judge is opened only if there is something to ask."""
    said = [_settled(pair) or known.get((place[0], pair.generated, pair.expected)) for place, pair in pairs]
    waiting = [place for place, judgement in enumerate(said) if judgement is None]
    if waiting and not inputs.run.asks_judge:
        nobody = Judgement(None, "", NO_JUDGE)
        return [judgement or nobody for judgement in said]
    if waiting:
        label = inputs.label("judging")
        inputs.progress.start(label, len(waiting))
        queue, on_the_way = iter(waiting), OnTheWay()

        async def work(judge: Judge) -> None:
            for place in queue:
                _, pair = pairs[place]
                with on_the_way.place() as way:
                    way.send()
                    said[place] = await judge.judge(pair.generated, pair.expected, pair.schema)
                inputs.progress.advance(label)

        try:
            cache, prompt = inputs.workspace.home.judgements, prompt_of(inputs)
            async with open_judge(version, cache, prompt=prompt, budget=budget) as judge:
                judge.counters = inputs.counts
                with _watched(inputs, version, budget, waiting, said):
                    await run_together([work(judge) for _ in range(min(_WORKERS, len(waiting)))], on_the_way.landed)
        finally:
            inputs.progress.finish(label)
    return [judgement for judgement in said if judgement is not None]


def _watched(
    inputs: Inputs,
    version: ModelVersion,
    budget: Budget,
    waiting: Sequence[int],
    said: Sequence[Judgement | None],
) -> AbstractContextManager[None]:
    """Shows those who watch the run how many pairs are judged, and which calls are made again."""

    def look(status: Status) -> None:
        status.done = sum(said[place] is not None for place in waiting)
        status.usd, status.tokens, status.calls = budget.usd, budget.tokens, inputs.counts.calls
        status.retried = made_again(inputs.counts)

    if inputs.run.watch is None:
        return nullcontext()
    return inputs.run.watch.asking(JUDGING, len(waiting), look, **limit_told(inputs, version))


def _settled(pair: ToJudge) -> Judgement | None:
    if pair.settled is None:
        return None
    value, reason = pair.settled
    return Judgement(value, _SETTLED, reason)


def _row(place: Place, pair: ToJudge, said: Judgement) -> dict[str, object]:
    turn_id, case_id, turn_index, sample = place
    asked = pair.settled is None and bool(said.model)
    return {
        "turn_id": turn_id,
        "case_id": case_id,
        "turn_index": turn_index,
        "sample": sample,
        "generated": pair.generated,
        "expected": pair.expected,
        "value": said.value,
        "choice": said.choice if said.choice != _SETTLED else None,
        "reason": said.reason or None,
        "error": said.error,
        "trace": said.trace,
        "model": said.model or None,
        "prompt_version": said.prompt_version or None,
        "asked": asked,
        "cached": said.cached,
        "input_tokens": said.usage.input_tokens if asked else None,
        "output_tokens": said.usage.output_tokens if asked else None,
        "latency_ms": said.seconds * 1000 if asked else None,
    }

"""Judgements: an LLM judge compares answers with the gold, for tracks that have one; rescoring reads what it said."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.interrupts import run_interruptibly
from eval_pipeline.core.model import Evidence, Json
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.judge import (
    DEFAULT_JUDGE,
    NO_JUDGE,
    SQL_MEANING,
    Judge,
    Judgement,
    LLMJudge,
    open_judge,
    why_no_judge,
)
from eval_pipeline.providers.prices import cost_usd
from eval_pipeline.stages.attempts.model_calls import run_together
from eval_pipeline.stages.attempts.rows import attempted_turns
from eval_pipeline.stages.evidence import load_evidence
from eval_pipeline.store.tables import CASES, JUDGEMENTS
from eval_pipeline.tracks.capabilities import Judged, ToJudge
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs
from eval_pipeline.workspace.workspace import Workspace

KIND = "judgement"
"""The kind of evidence that a judgement is to the track's metrics."""
JUDGE_PROMPT = "judge_prompt"
"""The setting that only asking the judge again could follow."""
_SETTLED = "settled"
_WORKERS = 64

Place = tuple[str, str, int, int]
"""Turn, case, turn index, sample."""
Pair = tuple[str, str]
"""Generated and expected."""


def judge_answers(inputs: Inputs, outputs: Outputs) -> None:
    """Has the final answer of every turn compared with its gold, and records what the judge said.

    Raises:
        FatalCallError: the judge can answer no question (a wrong key, an unknown model).
    """
    pairs = list(_pairs(inputs))
    version, today = judge_version(inputs.workspace, inputs.suite), datetime.now(UTC).date().isoformat()
    known = _known(inputs)
    said = run_interruptibly(_judge_all(inputs, version, [pair for _, pair in pairs], known))
    header = inputs.header(JUDGEMENTS)
    if known and header and (asked_by := header.made_from.get(JUDGE_PROMPT)):
        outputs.unlike(JUDGE_PROMPT, asked_by)
    rows = outputs.rows(JUDGEMENTS)
    for (place, pair), judgement in zip(pairs, said, strict=True):
        usd = cost_usd(version, judgement.usage, today) if judgement.model and not judgement.cached else None
        rows.add(_row(place, pair, judgement) | {"usd": usd})


def judging_settings(inputs: Inputs) -> dict[str, str]:
    """Who judges, under which question, and which pairs the suite's options leave out."""
    version = judge_version(inputs.workspace, inputs.suite)
    told = [version.provider, version.model, version.max_tokens, version.sampling, version.options]
    pairs = json_hash(inputs.options.get("judge"))
    read = inputs.workspace.fingerprints.of("eval_pipeline.judge.classifier:classify", LLMJudge).code
    question = f"{SQL_MEANING.identity}/{read}"
    return {"judge": json_hash([told, SQL_MEANING.version]), JUDGE_PROMPT: question, "pairs": pairs}


def judging_facts(inputs: Inputs) -> dict[str, Json]:
    """How many pairs there were, how many the judge was asked about, and what came of them."""
    found = inputs.read(JUDGEMENTS, ["value", "error", "asked"])
    rows = found.num_rows
    facts: dict[str, Json] = {"rows": rows, "asked": sum(found["asked"].to_pylist())}
    return facts | {"without_value": found["value"].null_count, "errors": rows - found["error"].null_count}


def not_all_judged(inputs: Inputs) -> bool:
    """Whether asking again may help: the judge failed, or nobody could be asked and now somebody can."""
    if not inputs.run.asks_judge or why_no_judge(judge_version(inputs.workspace, inputs.suite)):
        return False
    rows = inputs.read(JUDGEMENTS, ["reason", "error"]).to_pylist()
    return any(row["error"] is not None or row["reason"] == NO_JUDGE for row in rows)


def load_judgements(inputs: Inputs) -> Mapping[tuple[str, int], Sequence[Evidence]]:
    """The judgements of a partition by turn and sample, as evidence; none for tracks without a judge."""
    if not isinstance(inputs.track, Judged):
        return {}
    found: defaultdict[tuple[str, int], list[Evidence]] = defaultdict(list)
    columns = ["turn_id", "sample", "value", "choice", "reason", "error", "trace", "model", "expected"]
    for row in inputs.read(JUDGEMENTS, columns).to_pylist():
        place = (row.pop("turn_id"), row.pop("sample"))
        found[place].append(Evidence(*place, KIND, row["choice"] or "", row["value"], row))
    return found


def pairs_of(inputs: Inputs) -> list[tuple[Place, ToJudge]]:
    """What a judge would be shown of each turn and sample, settled ones too."""
    return list(_pairs(inputs))


def judge_version(workspace: Workspace, suite: str) -> ModelVersion:
    """Who judges a suite: the model version that its option `judge_model` names, else a Claude model.

    Raises:
        UsageError: there is no such model version.
    """
    name = workspace.suite(suite).require().options.get("judge_model")
    if name is None:
        return DEFAULT_JUDGE
    try:
        return workspace.model_version(str(name))
    except UsageError as error:
        raise UsageError(f"suite '{suite}', options.judge_model: {error}") from error


def _pairs(inputs: Inputs) -> Iterator[tuple[Place, ToJudge]]:
    track, evidence = inputs.track, load_evidence(inputs)
    assert isinstance(track, Judged)
    for case, turn, sample, made in attempted_turns(inputs):
        pair = track.to_judge(case, turn, made[-1][1], evidence.get((turn.id, sample), ()))
        if pair is not None:
            yield (turn.id, case.id, turn.index, sample), pair


def _known(inputs: Inputs) -> dict[Pair, Judgement]:
    """What the same judge has said of pairs of the same cases, by generated and expected, whatever its age.

    Under another question too, but where somebody wants everything asked again.
    """
    header, same = inputs.header(JUDGEMENTS), judging_settings(inputs) | inputs.hashes((CASES,))
    again = inputs.run.exact and inputs.run.asks_judge
    names = ("judge", CASES.name, *([JUDGE_PROMPT] if again else []))
    if header is None or any(header.made_from.get(name) != same[name] for name in names):
        return {}
    return {
        (row["generated"], row["expected"]): Judgement(
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
    inputs: Inputs, version: ModelVersion, pairs: Sequence[ToJudge], known: Mapping[Pair, Judgement]
) -> list[Judgement]:
    """What the judge says of each pair, in their order; it is opened where there is something to ask."""
    said = [_settled(pair) or known.get((pair.generated, pair.expected)) for pair in pairs]
    waiting = [place for place, judgement in enumerate(said) if judgement is None]
    if waiting and not inputs.run.asks_judge:
        nobody = Judgement(None, "", NO_JUDGE)
        return [judgement or nobody for judgement in said]
    if waiting:
        label = inputs.label("judging")
        inputs.progress.start(label, len(waiting))
        queue = iter(waiting)

        async def work(judge: Judge) -> None:
            for place in queue:
                pair = pairs[place]
                said[place] = await judge.judge(pair.generated, pair.expected, pair.schema)
                inputs.progress.advance(label)

        try:
            async with open_judge(version, inputs.workspace.home.judgements) as judge:
                await run_together([work(judge) for _ in range(min(_WORKERS, len(waiting)))])
        finally:
            inputs.progress.finish(label)
    return [judgement for judgement in said if judgement is not None]


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

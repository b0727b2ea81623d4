"""Judgements: an LLM judge compares answers with the gold, for tracks that have one; rescoring reads what it said."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.interrupts import run_interruptibly
from eval_pipeline.core.model import Evidence, Partition
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.judge import DEFAULT_JUDGE, NO_JUDGE, SQL_MEANING, Judge, Judgement, open_judge, why_no_judge
from eval_pipeline.providers.prices import cost_usd
from eval_pipeline.stages.attempts.model_calls import run_together
from eval_pipeline.stages.attempts.rows import attempted_turns
from eval_pipeline.stages.evidence import load_evidence
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import CASES, EVIDENCE, GENERATIONS, JUDGEMENTS, RECOVERY_ATTEMPTS
from eval_pipeline.tracks.capabilities import Judged, ToJudge
from eval_pipeline.workspace.columns import Columns, by_name
from eval_pipeline.workspace.lineage import content_hashes
from eval_pipeline.workspace.progress import SILENT, label_of
from eval_pipeline.workspace.workspace import Progress, StageResult, Workspace

VERSION = "2"
KIND = "judgement"
"""The kind of evidence that a judgement is to the track's metrics."""
_SETTLED = "settled"
_WORKERS = 64

Place = tuple[str, str, int, int]
"""Turn, case, turn index, sample."""
Pair = tuple[str, str]
"""Generated and expected."""


def judge_answers(workspace: Workspace, partition: Partition, progress: Progress = SILENT) -> StageResult:
    """Has the final answer of every turn compared with its gold, and records what the judge said.

    Raises:
        FatalCallError: the judge can answer no question (a wrong key, an unknown model).
    """
    record, key = workspace.record, RecordKey.of(partition)
    made_from = _made_from(workspace, partition)
    reused = is_current(workspace, partition)
    if not reused:
        pairs = list(_pairs(workspace, partition))
        known = _known(workspace, partition, made_from)
        version, today = judge_version(workspace, partition.suite), datetime.now(UTC).date().isoformat()
        said = run_interruptibly(_judge_all(workspace, partition, [pair for _, pair in pairs], known, progress))
        with record.writer(JUDGEMENTS, key, made_from) as writer:
            rows = Columns(writer, by_name)
            for (place, pair), judgement in zip(pairs, said, strict=True):
                usd = cost_usd(version, judgement.usage, today) if judgement.model and not judgement.cached else None
                rows.add(_row(place, pair, judgement) | {"usd": usd})
            rows.flush()
    header = record.header(JUDGEMENTS, key)
    assert header is not None
    found = record.read(JUDGEMENTS, key, ["value", "error", "asked"])
    facts = {"rows": header.rows, "asked": sum(found["asked"].to_pylist())}
    facts["without_value"] = found["value"].null_count
    facts["errors"] = header.rows - found["error"].null_count
    return StageResult(header.rows, header.content_hash, reused, facts)


def is_current(workspace: Workspace, partition: Partition) -> bool:
    """Whether the record holds what `judge_answers` would make; what nobody judged is asked when there is a judge."""
    key = RecordKey.of(partition)
    if not workspace.record.is_current(JUDGEMENTS, key, _made_from(workspace, partition)):
        return False
    if why_no_judge(judge_version(workspace, partition.suite)):
        return True
    rows = workspace.record.read(JUDGEMENTS, key, ["reason", "error"]).to_pylist()
    return not any(row["error"] is not None or row["reason"] == NO_JUDGE for row in rows)


def load_judgements(workspace: Workspace, partition: Partition) -> Mapping[tuple[str, int], Sequence[Evidence]]:
    """The judgements of a partition by turn and sample, as evidence; none for tracks without a judge."""
    if not isinstance(workspace.track(partition.suite), Judged):
        return {}
    found: defaultdict[tuple[str, int], list[Evidence]] = defaultdict(list)
    columns = ["turn_id", "sample", "value", "choice", "reason", "error", "trace", "model", "expected"]
    for row in workspace.record.read(JUDGEMENTS, RecordKey.of(partition), columns).to_pylist():
        place = (row.pop("turn_id"), row.pop("sample"))
        found[place].append(Evidence(*place, KIND, row["choice"] or "", row["value"], row))
    return found


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


def _made_from(workspace: Workspace, partition: Partition) -> dict[str, str]:
    version = judge_version(workspace, partition.suite)
    told = [version.provider, version.model, version.max_tokens, version.sampling, version.options]
    options = workspace.suite(partition.suite).require().options
    made_from = content_hashes(workspace.record, partition, (CASES, GENERATIONS, RECOVERY_ATTEMPTS, EVIDENCE))
    # Which pairs are asked about follows from the evidence and the suite's options, by code of the evidence's version.
    pairs = json_hash([workspace.track(partition.suite).versions["evidence"], options.get("judge")])
    return made_from | {"judge": json_hash([told, SQL_MEANING.version]), "pairs": pairs, "stage": VERSION}


def _pairs(workspace: Workspace, partition: Partition) -> Iterator[tuple[Place, ToJudge]]:
    track, evidence = workspace.track(partition.suite), load_evidence(workspace, partition)
    assert isinstance(track, Judged)
    for case, turn, sample, made in attempted_turns(workspace, partition):
        pair = track.to_judge(case, turn, made[-1][1], evidence.get((turn.id, sample), ()))
        if pair is not None:
            yield (turn.id, case.id, turn.index, sample), pair


def _known(workspace: Workspace, partition: Partition, made_from: Mapping[str, str]) -> dict[Pair, Judgement]:
    """What the same judge has said of pairs of the same cases, by generated and expected, whatever its age."""
    header = workspace.record.header(JUDGEMENTS, RecordKey.of(partition))
    if header is None or any(header.made_from.get(name) != made_from[name] for name in ("judge", CASES.name)):
        return {}
    rows = workspace.record.read(JUDGEMENTS, RecordKey.of(partition)).to_pylist()
    return {
        (row["generated"], row["expected"]): Judgement(
            row["value"],
            row["choice"] or "",
            row["reason"] or "",
            model=row["model"],
            prompt_version=row["prompt_version"] or "",
            cached=True,
        )
        for row in rows
        if row["asked"] and row["error"] is None
    }


async def _judge_all(
    workspace: Workspace,
    partition: Partition,
    pairs: Sequence[ToJudge],
    known: Mapping[Pair, Judgement],
    progress: Progress,
) -> list[Judgement]:
    """What the judge says of each pair, in their order; it is opened where there is something to ask."""
    said = [_settled(pair) or known.get((pair.generated, pair.expected)) for pair in pairs]
    waiting = [place for place, judgement in enumerate(said) if judgement is None]
    if waiting:
        version = judge_version(workspace, partition.suite)
        label = label_of(partition, "judging")
        progress.start(label, len(waiting))
        queue = iter(waiting)

        async def work(judge: Judge) -> None:
            for place in queue:
                pair = pairs[place]
                said[place] = await judge.judge(pair.generated, pair.expected, pair.schema)
                progress.advance(label)

        try:
            async with open_judge(version, workspace.home.judgements) as judge:
                await run_together([work(judge) for _ in range(min(_WORKERS, len(waiting)))])
        finally:
            progress.finish(label)
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

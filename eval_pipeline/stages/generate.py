"""Generations: the first attempt at every turn, asked, executed and recorded."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace

from eval_pipeline import __version__
from eval_pipeline.core.errors import EvalError, UsageError
from eval_pipeline.core.ids import json_hash, json_text
from eval_pipeline.core.model import CallErrorKind, Case, Partition, Turn
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Provider
from eval_pipeline.providers.calls import Counters
from eval_pipeline.providers.prices import price_version
from eval_pipeline.stages.ask import Asked, Asker, history_texts, own_answer
from eval_pipeline.stages.attempt_sink import AttemptSink
from eval_pipeline.stages.attempts import keep_attempts
from eval_pipeline.stages.model_calls import open_caller, provider_for, run_together
from eval_pipeline.stages.registration import register_model_version
from eval_pipeline.stages.runs import FAILED, RUNNING, RunContext, now, partition_lock, record_run, run_rows
from eval_pipeline.stages.scope import FULL, Scope, failed_cases
from eval_pipeline.stages.workspace import Progress, StageResult, Workspace
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import CASES, GENERATION_PROMPTS, GENERATIONS, VALIDATION
from eval_pipeline.tracks.base import Track

VERSION = "1"
TABLES = (GENERATIONS, GENERATION_PROMPTS, VALIDATION)


@dataclass(frozen=True, slots=True)
class Unit:
    """Turns asked one after the other: a single one, or a conversation that shows the model its own answers."""

    case: Case
    turns: tuple[Turn, ...]
    sample: int


def generate(
    workspace: Workspace, partition: Partition, run: RunContext, scope: Scope, progress: Progress
) -> StageResult:
    """Asks the model version every turn of the scope and records prompts, responses, artefacts and outcomes.

    Responses that the journal holds are not asked for again; nothing at all is done where the record is current. Of two
    runs of one partition the later one waits for the other.

    Raises:
        UsageError: an unknown name, or a partial scope over a full evaluation of the same date.
        FatalCallError: no call can succeed.
    """
    workspace.model_version(partition.model_version)
    workspace.track(partition.suite)
    guard_scope(workspace, partition, scope)
    with partition_lock(workspace, partition, progress):
        # The run that this one waited for may have been a full evaluation.
        guard_scope(workspace, partition, scope)
        return _generate(workspace, partition, run, scope, progress)


def _generate(
    workspace: Workspace, partition: Partition, run: RunContext, scope: Scope, progress: Progress
) -> StageResult:
    """As `generate`, for the one run that holds the partition's lock."""
    version = workspace.model_version(partition.model_version)
    track = workspace.track(partition.suite)
    key, record = RecordKey.of(partition), workspace.record
    cases = cases_in_scope(workspace, partition, scope)
    planned = sum(len(case.turns) for case in cases) * version.samples_per_turn
    run = replace(run, epoch=effective_epoch(workspace, partition, run.epoch))
    made_from = _made_from(workspace, partition, track, version, scope, cases, run.epoch)
    reused = _is_made(workspace, key, made_from)
    counts = Counters()
    _open_run(workspace, partition, run, scope, cases)
    if not reused:
        with closing_failed(workspace, partition, run.run_id, counts):
            provider = provider_for(workspace, version)
            register_model_version(workspace, version, provider)
            units = list(plan_units(cases, version))
            label = f"{partition.suite} · {partition.model_version} · generations"
            progress.start(label, planned)
            with ExitStack() as stack:
                writers = [stack.enter_context(record.writer(table, key, made_from)) for table in TABLES]
                sink = AttemptSink(track, version, provider.simulated, *writers)
                ordered = _Ordered(sink)
                asking = _ask_all(
                    workspace, partition, run.epoch, version, provider, track, units, ordered, counts, progress, label
                )
                asyncio.run(asking)
                sink.flush()
            keep_attempts(workspace, partition, GENERATIONS, sink.made)
            progress.finish(label)
        record_run(workspace, partition, run.run_id, counts)
    header = record.header(GENERATIONS, key)
    assert header is not None
    facts = {"turns": planned, "calls": counts.calls, "journal_hits": counts.journal_hits}
    facts["call_errors"] = counts.failures
    return StageResult(header.rows, header.content_hash, reused, facts)


def note_run(workspace: Workspace, partition: Partition, run: RunContext, scope: Scope) -> None:
    """Puts a run that need not ask into `runs`."""
    run = replace(run, epoch=effective_epoch(workspace, partition, run.epoch))
    _open_run(workspace, partition, run, scope, cases_in_scope(workspace, partition, scope))


def note_later_run(workspace: Workspace, partition: Partition, run_id: str) -> None:
    """Puts a run that goes on from generations made by another one into `runs`, with what the partition holds."""
    if not any(row["run_id"] == run_id for row in run_rows(workspace, partition, ["run_id"])):
        run = RunContext(run_id, recorded_epoch(workspace, partition))
        scope = Scope.from_label(planned_scope(workspace, partition))
        _open_run(workspace, partition, run, scope, planned_cases(workspace, partition))


@contextmanager
def closing_failed(workspace: Workspace, partition: Partition, run_id: str, counts: Counters) -> Iterator[None]:
    """Notes in `runs` what was asked until an exception, and that the run failed."""
    try:
        yield
    except BaseException:
        with suppress(EvalError):  # what ended the run is what has to be told
            record_run(workspace, partition, run_id, counts, status=FAILED, finished_at=now())
        raise


def _open_run(workspace: Workspace, partition: Partition, run: RunContext, scope: Scope, cases: Sequence[Case]) -> None:
    samples = workspace.model_version(partition.model_version).samples_per_turn
    record_run(
        workspace,
        partition,
        run.run_id,
        Counters(),
        status=RUNNING,
        finished_at=None,
        scope=scope.label(),
        turns_planned=sum(len(case.turns) for case in cases) * samples,
        cases_planned=len(cases),
        epoch=run.epoch,
        software=json_text({"eval_pipeline": __version__, "genai-prices": price_version()}),
    )


def cases_in_scope(workspace: Workspace, partition: Partition, scope: Scope) -> list[Case]:
    """The cases of a suite that a run over the scope covers."""
    failed = failed_cases(workspace.record, partition) if scope.failed else None
    return scope.select(workspace.cases(partition.suite), failed)


def planned_cases(workspace: Workspace, partition: Partition) -> list[Case]:
    """The cases that the partition's generations were made for.

    What had failed when they were made cannot be told from what has failed today: there the generations say it.
    """
    scope = Scope.from_label(planned_scope(workspace, partition))
    if not scope.failed:
        return cases_in_scope(workspace, partition, scope)
    table = workspace.record.read(GENERATIONS, RecordKey.of(partition), ["case_id"])
    asked = set(table["case_id"].unique().to_pylist())
    return [case for case in workspace.cases(partition.suite) if case.id in asked]


def is_current(workspace: Workspace, partition: Partition, scope: Scope, epoch: str) -> bool:
    """Whether the record holds what `generate` would make; calls that failed and may succeed now are asked again."""
    version, track = workspace.model_version(partition.model_version), workspace.track(partition.suite)
    epoch = effective_epoch(workspace, partition, epoch)
    cases = cases_in_scope(workspace, partition, scope)
    made_from = _made_from(workspace, partition, track, version, scope, cases, epoch)
    return _is_made(workspace, RecordKey.of(partition), made_from)


def effective_epoch(workspace: Workspace, partition: Partition, epoch: str) -> str:
    """The epoch of a run: its own, else that of a later run that did not end, else that of what the partition holds.

    So a plain run after a nightly or fresh one of the same date keeps those responses, or goes on with those that had
    arrived when it was killed, and does not pay again.
    """
    if epoch:
        return epoch
    recorded = recorded_epoch(workspace, partition)
    columns = ["status", "epoch", "started_at", "calls", "journal_hits"]
    rows = sorted(run_rows(workspace, partition, columns), key=lambda row: row["started_at"])
    for row in reversed(rows):
        if row["status"] in {RUNNING, FAILED}:
            return row["epoch"] or ""
        # A run that only published says nothing of which generations are newer.
        if (row["epoch"] or "") == recorded and (row["calls"] or row["journal_hits"]):
            break
    return recorded


def recorded_epoch(workspace: Workspace, partition: Partition) -> str:
    """The epoch of the generations in the record; the first where there are none."""
    header = workspace.record.header(GENERATIONS, RecordKey.of(partition))
    return header.made_from.get("epoch", "") if header else ""


def plan_units(cases: Sequence[Case], version: ModelVersion) -> Iterator[Unit]:
    """What can be asked independently of everything else, in the suite's order."""
    for case in cases:
        for sample in range(version.samples_per_turn):
            if version.history == "own":
                yield Unit(case, case.turns, sample)
            else:
                yield from (Unit(case, (turn,), sample) for turn in case.turns)


def prompt_version(version: ModelVersion, track: Track) -> str:
    """The prompt version a model version uses on a track. Raises UsageError for one the track does not know."""
    name = version.prompt.get(track.name, track.prompt_versions[-1])
    if name not in track.prompt_versions:
        known = ", ".join(track.prompt_versions)
        raise UsageError(f"model version '{version.name}': track {track.name} has no prompt '{name}'; known: {known}")
    return name


def planned_scope(workspace: Workspace, partition: Partition) -> str:
    """Label of the scope that the partition's generations were made with. Raises UsageError where there are none."""
    header = workspace.record.header(GENERATIONS, RecordKey.of(partition))
    if header is None:
        raise UsageError(f"{partition.suite} has no generations of {partition.model_version} on {partition.eval_date}")
    return header.made_from["scope"]


def guard_scope(workspace: Workspace, partition: Partition, scope: Scope) -> None:
    """Refuses to replace a full evaluation by a part of it. Raises UsageError."""
    header = workspace.record.header(GENERATIONS, RecordKey.of(partition))
    if header is not None and header.made_from.get("scope") == FULL and not scope.is_full:
        raise UsageError(
            f"{partition.suite} has been evaluated in full for {partition.model_version} on {partition.eval_date}; "
            "a part would replace it: give another --eval-date"
        )


def _made_from(
    workspace: Workspace,
    partition: Partition,
    track: Track,
    version: ModelVersion,
    scope: Scope,
    selected: Sequence[Case],
    epoch: str,
) -> Mapping[str, str]:
    cases = workspace.record.header(CASES, RecordKey(suite=partition.suite))
    predictions = version.predictions.get(partition.suite)
    selection = {} if scope.is_full else {"selection": json_hash(sorted(case.id for case in selected))}
    versions = {name: track.versions[name] for name in ("parser", "executor", "validator", "damage")}
    return {
        "cases": cases.content_hash if cases else "",
        "identity": version.identity_hash(),
        "prompt": prompt_version(version, track),
        "predictions": predictions.content_hash if predictions else "",
        "price": json_hash(
            [version.priced_as, version.price and version.price.model_dump(mode="json"), price_version()]
        ),
        "scope": scope.label(),
        "epoch": epoch,
        "stage": VERSION,
        **selection,
        **versions,
    }


def _is_made(workspace: Workspace, key: RecordKey, made_from: Mapping[str, str]) -> bool:
    made = all(workspace.record.is_current(table, key, made_from) for table in TABLES)
    return made and not unanswered(workspace, GENERATIONS, key)


def unanswered(workspace: Workspace, table: Table, key: RecordKey) -> bool:
    """Whether asking again may help: a call failed for another reason than that there is no prediction."""
    errors = set(workspace.record.read(table, key, ["call_error"])["call_error"].unique().to_pylist())
    return bool(errors - {None, CallErrorKind.NO_PREDICTION.value, CallErrorKind.REFUSED.value})


async def _ask_all(
    workspace: Workspace,
    partition: Partition,
    epoch: str,
    version: ModelVersion,
    provider: Provider,
    track: Track,
    units: Sequence[Unit],
    ordered: "_Ordered",
    counts: Counters,
    progress: Progress,
    label: str,
) -> None:
    prompts = prompt_version(version, track)
    async with open_caller(workspace, version, provider, epoch) as caller, track.executor() as executor:
        caller.counters = counts  # the run's own, which also an exception leaves behind
        asker = Asker(track, partition.suite, caller, executor, version.samples_per_turn, provider.recorded)
        waiting = iter(enumerate(units))

        async def worker() -> None:
            for place, unit in waiting:
                ordered.put(place, unit, await _ask_unit(asker, version, unit, prompts))
                progress.advance(label, len(unit.turns))

        await run_together([worker() for _ in range(min(version.concurrency, len(units)))])


async def _ask_unit(asker: Asker, version: ModelVersion, unit: Unit, prompts: str) -> list[Asked]:
    own: dict[str, str] | None = {} if version.history == "own" else None
    asked = []
    for turn in unit.turns:
        history = history_texts(asker.track, unit.case, turn, own)
        prompt = asker.track.prompt(unit.case, turn, history, prompts)
        result = await asker.attempt(unit.case, turn, unit.sample, prompt, history)
        if own is not None:
            own[turn.id] = own_answer(asker.track, result.attempt)
        asked.append(result)
    return asked


class _Ordered:
    """Passes results on in the order of the units, whatever the order in which they arrive."""

    def __init__(self, sink: AttemptSink) -> None:
        self._sink = sink
        self._arrived: dict[int, tuple[Unit, list[Asked]]] = {}
        self._next = 0

    def put(self, place: int, unit: Unit, asked: list[Asked]) -> None:
        """Takes the results of the unit at that place."""
        self._arrived[place] = (unit, asked)
        while self._next in self._arrived:
            ready, results = self._arrived.pop(self._next)
            for turn, result in zip(ready.turns, results, strict=True):
                self._sink.add(ready.case, turn, result)
            self._next += 1

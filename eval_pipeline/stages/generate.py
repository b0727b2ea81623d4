"""Generations: the first attempt at every turn, asked, executed and recorded."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial

import pyarrow.compute as pc

from eval_pipeline import __version__
from eval_pipeline.asking.calls import Caller, Counters
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.ids import json_hash, json_text
from eval_pipeline.core.interrupts import run_interruptibly
from eval_pipeline.core.model import CallErrorKind, Case, Partition
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.prices import price_version
from eval_pipeline.providers.standins.recorded import refuse_edited
from eval_pipeline.stages.attempts.ask import Asked, Asker, first_question, own_answer, prefix_uses
from eval_pipeline.stages.attempts.model_calls import ask_together, asking_facts, open_caller, provider_for
from eval_pipeline.stages.attempts.registration import register_model_version
from eval_pipeline.stages.attempts.rows import keep_attempts
from eval_pipeline.stages.attempts.sink import AttemptSink
from eval_pipeline.stages.attempts.units import Unit, plan_units, turn_by_turn
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import CASES, GENERATION_PROMPTS, GENERATIONS, VALIDATION
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import executor_of
from eval_pipeline.workspace.planned import (
    cases_in_scope,
    effective_epoch,
    guard_scope,
    planned_cases,
    planned_scope,
    recorded_epoch,
)
from eval_pipeline.workspace.runs import FAILED, RUNNING, RunContext, now, partition_lock, record_run, run_rows
from eval_pipeline.workspace.scope import Scope
from eval_pipeline.workspace.workspace import Progress, StageResult, Workspace

VERSION = "2"
TABLES = (GENERATIONS, GENERATION_PROMPTS, VALIDATION)


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
            advance = partial(progress.advance, label)
            with ExitStack() as stack:
                writers = [stack.enter_context(record.writer(table, key, made_from)) for table in TABLES]
                sink = AttemptSink(track, version, provider.simulated, *writers)
                ordered = _Ordered(sink)
                opening = open_caller(workspace, partition, run, provider, counts, progress)
                asking = _ask_all(opening, partition.suite, version, track, provider.recorded, units, ordered, advance)
                run_interruptibly(asking)
                sink.flush()
            keep_attempts(workspace, partition, GENERATIONS, sink.made)
            progress.finish(label)
        record_run(workspace, partition, run.run_id, counts)
    header = record.header(GENERATIONS, key)
    assert header is not None
    return StageResult(header.rows, header.content_hash, reused, {"turns": planned} | asking_facts(version, counts))


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


def is_current(workspace: Workspace, partition: Partition, scope: Scope, epoch: str) -> bool:
    """Whether the record holds what `generate` would make; calls that failed and may succeed now are asked again."""
    version, track = workspace.model_version(partition.model_version), workspace.track(partition.suite)
    epoch = effective_epoch(workspace, partition, epoch)
    cases = cases_in_scope(workspace, partition, scope)
    made_from = _made_from(workspace, partition, track, version, scope, cases, epoch)
    return _is_made(workspace, RecordKey.of(partition), made_from)


def prompt_version(version: ModelVersion, track: Track) -> str:
    """The prompt version a model version uses on a track: the newest where it names none."""
    return version.prompt.get(track.name, track.prompt_versions[-1])


def _made_from(
    workspace: Workspace,
    partition: Partition,
    track: Track,
    version: ModelVersion,
    scope: Scope,
    selected: Sequence[Case],
    epoch: str,
) -> Mapping[str, str]:
    cases = workspace.record.header(CASES, RecordKey.of_suite(partition.suite))
    predictions = version.predictions.get(partition.suite)
    if predictions:
        refuse_edited(workspace.home.predictions / predictions.file, predictions.content_hash)
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
    """Whether asking again may help: a call gave nothing, for another reason than that there is no prediction.

    A response that is no answer, since the model refused or ran into `max_tokens`, would be the same again.
    """
    rows = workspace.record.read(table, key, ["call_error", "stop_reason"])
    errors = pc.filter(rows["call_error"], pc.is_null(rows["stop_reason"])).unique().to_pylist()
    return bool(set(errors) - {None, CallErrorKind.NO_PREDICTION.value, CallErrorKind.REFUSED.value})


async def _ask_all(
    opening: AbstractAsyncContextManager[Caller],
    suite: str,
    version: ModelVersion,
    track: Track,
    recorded: bool,
    units: Sequence[Unit],
    ordered: "_Ordered",
    advance: Callable[[int], None],
) -> None:
    prompts = prompt_version(version, track)
    async with opening as caller, executor_of(track) as executor:
        uses = prefix_uses(track, ((unit.case, len(unit.turns)) for unit in units))
        asker = Asker(track, suite, caller, executor, uses, recorded)

        async def ask(placed: Sequence[tuple[int, Unit]]) -> None:
            asked = await _ask_units(asker, version, [unit for _, unit in placed], prompts)
            for (place, unit), results in zip(placed, asked, strict=True):
                ordered.put(place, unit, results)
                advance(len(unit.turns))

        await ask_together(turn_by_turn(units, version.concurrency), len(units), version, caller, executor, ask)


async def _ask_units(asker: Asker, version: ModelVersion, units: Sequence[Unit], prompts: str) -> list[list[Asked]]:
    """Asks units side by side: the first turn of each, then the second ones, and so on."""
    asked: list[list[Asked]] = [[] for _ in units]
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

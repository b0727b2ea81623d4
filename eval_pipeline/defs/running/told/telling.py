"""Tells Dagster what commands have done without it, so that its pages show that like runs of its own.

A note of an ended command becomes a run for each model version, with the events that Dagster writes for a run of these
assets, at the times at which things happened: steps, materialisations with metadata, data and code versions, results of
checks, failures. No call of Dagster's does that: `report_runless_asset_event` knows neither runs nor steps nor inputs.

A run is unfinished until all its events are written. One that is found so was left by a dead process; it is removed and
told again. Where Dagster knows of a later result of the same asset and partition, only the steps are told.
"""

import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

import dagster as dg
from sqlalchemy.exc import IntegrityError

from eval_pipeline.chain.evaluation import chain_of
from eval_pipeline.chain.freshness import CODE
from eval_pipeline.chain.stage import Stage
from eval_pipeline.core.errors import EvalError, LockedError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.defs.assets.partitions import DIMENSION, EPOCH, EVAL_DATE, SCOPE
from eval_pipeline.defs.assets.resources import EvaluationResource
from eval_pipeline.defs.assets.suite_assets import Place, code_version, materialised, placed
from eval_pipeline.defs.automation.jobs import ALL, COMPARE, suite_job_name
from eval_pipeline.defs.dagster_inside.running import (
    CODE_LOCATION_TAG,
    PARTITION_NAME_TAG,
    ExecutionPlanSnapshot,
    create_execution_plan,
    snapshot_from_execution_plan,
)
from eval_pipeline.defs.running.instance import open_instance
from eval_pipeline.defs.running.origin import LOCATION, TERMINAL, job_origin, job_over
from eval_pipeline.defs.running.storage import stored, together
from eval_pipeline.defs.running.told.known_results import KnownResults
from eval_pipeline.defs.running.told.noted_runs import NotedRun, NotedStep, left_out, noted_runs
from eval_pipeline.defs.running.told.told_events import ToldRun, step_of, version_tags
from eval_pipeline.operations.runs.steps import Step
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import MODEL_VERSIONS
from eval_pipeline.workspace.asked.scope import FULL
from eval_pipeline.workspace.homes.locks import held
from eval_pipeline.workspace.homes.places import place_of
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.noting.commands import ended
from eval_pipeline.workspace.noting.noted import Noted
from eval_pipeline.workspace.workspace import Workspace

OF_DEV = "dev"
"""Name in the notes of what `dev` itself has done, of which no terminal has told, so that notifications do."""
_MOST_PLANNED = 40
"""Suites of a run whose plan of steps is kept with it: planning takes time that grows faster than the steps."""
_MOST_S = 3.0
"""Seconds after which the rest of the notes is left to the next look: `dev` has other things to do, too."""
_CLOCK_S = 1.0
"""How far the clock of a file system may be behind."""

_log = logging.getLogger(__name__)


def tell(home: Home) -> int:
    """Tells Dagster of the commands that have ended and forgets their notes; returns their number.

    A note that cannot be told stays, and does not stop the others. Nothing is done while another process tells, and no
    further note is begun after some seconds.
    """
    if next(iter(ended(home)), None) is None:
        return 0
    told, until = 0, time.monotonic() + _MOST_S
    with (
        suppress(LockedError),
        held(home.root, (place_of(home).lock_name("telling"),), 0),
        open_instance(home) as instance,
    ):
        plans = _Plans(Workspace(home))
        for name, noted, forget in ended(home):
            try:
                tell_of(noted, instance, plans)
            except Exception:
                _log.exception("cannot tell Dagster of the command %s", name)
            else:
                forget()
                told += 1
            if time.monotonic() > until:
                break
    return told


def tell_of(noted: Noted, instance: dg.DagsterInstance, plans: "_Plans") -> None:
    """Tells Dagster of the runs of a note that it does not know yet."""
    workspace = plans.workspace
    new = [one for run in noted_runs(noted) if (one := _Telling(run, noted.command, instance, plans)).is_new()]
    names = dict.fromkeys(one.noted.model_version for one in new)
    instance.add_dynamic_partitions(DIMENSION, [name for name in names if name and not workspace.is_retired(name)])
    for one in new:
        one.add()
    # A comparison was made from what the other runs of the command had made: the order is that of all their steps.
    steps = sorted(((step.ended, one, step) for one in new for step in one.noted.steps), key=lambda told: told[0])
    known = KnownResults(instance, {key for one in new for key in one.keys})
    with together(instance.event_log_storage):
        for one in new:
            one.begin()
        for _, one, step in steps:
            one.step(step, known)
        for one in new:
            one.end()
    for one in new:
        one.finish()


class _Plans:
    """Chains of suites, and jobs with their plans, made once for all runs that have the same."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._jobs: dict[tuple[str, frozenset[dg.AssetKey]], tuple[dg.JobDefinition, ExecutionPlanSnapshot]] = {}
        self._placed: dict[str, list[tuple[Stage, Place]]] = {}

    def placed(self, suite: str) -> list[tuple[Stage, Place]]:
        """Returns the stages of a suite with their places in the chain, in order; none if the suite is gone."""
        if suite not in self._placed:
            source = self.workspace.suites.get(suite)
            chain = chain_of(source.track() if source.header else None) if source else ()
            self._placed[suite] = placed(chain)
        return self._placed[suite]

    def job(self, name: str, keys: frozenset[dg.AssetKey]) -> tuple[dg.JobDefinition, ExecutionPlanSnapshot]:
        """Returns the job of that name over these assets, and its plan."""
        if (name, keys) not in self._jobs:
            job = job_over(EvaluationResource(self.workspace), name, keys)
            plan = snapshot_from_execution_plan(create_execution_plan(job), job.get_job_snapshot_id())
            self._jobs[name, keys] = job, plan
        return self._jobs[name, keys]


@dataclass(frozen=True, slots=True)
class _Asset:
    """A stage of a suite as the asset of a run.

    Attributes:
        inputs: what the stage has read, without an evaluation if it is of a whole suite.
        partition: None for stages of a whole suite.
    """

    stage: Stage
    place: Place
    inputs: Inputs
    key: dg.AssetKey
    partition: str | None

    def made(self, step: NotedStep) -> dg.MaterializeResult:
        """Returns what is shown of a result; of what the record no longer holds, only what the note has."""
        assert step.result is not None
        found = [(check, step.verdicts[check.name]) for check in self.stage.checks if check.name in step.verdicts]
        made = Step(step.result, found)
        with suppress(EvalError):
            if self.holds(step):
                return materialised(self.stage, self.place, self.inputs, made)
        return materialised(self.stage, self.place, self.inputs, made, held=False)

    def holds(self, step: NotedStep) -> bool:
        """Whether record and reports still hold what a step has made."""
        assert step.result is not None
        if isinstance(folder := step.result.facts.get("folder"), Path):
            return folder.exists() and folder.stat().st_mtime <= step.ended + _CLOCK_S
        try:
            return not self.stage.writes or self.inputs.combined_hash(self.stage.writes) == step.result.content_hash
        except EvalError:
            return False

    def code(self, step: NotedStep) -> str:
        """Returns the fingerprint of the code that made a result, or of that of now if the record cannot tell."""
        header = self.inputs.header(self.stage.writes[0]) if self.stage.writes and self.holds(step) else None
        made = header.made_from.get(CODE) if header is not None else None
        return made or code_version(self.stage, self.inputs) or ""


class _Telling:
    """The telling of one run."""

    def __init__(self, noted: NotedRun, command: str, instance: dg.DagsterInstance, plans: _Plans) -> None:
        self.noted = noted
        self._command, self._instance, self._plans = command, instance, plans
        name = suite_job_name(noted.suites[0]) if len(noted.suites) == 1 else ALL
        self._run = ToldRun(noted.run_id, name if noted.model_version else COMPARE)
        self._assets = {(suite, name): one for suite in noted.suites for name, one in self._assets_of(suite).items()}
        self._left_out = [one for suite in noted.suites for one in self._left_out_of(suite)]
        self._failed: list[dg.EventLogEntry] = []

    def _assets_of(self, suite: str) -> dict[str, _Asset]:
        name, found, whole = self.noted.model_version, {}, Inputs(self._plans.workspace, suite)
        own = whole
        if name:
            own = whole.anew(partition=Partition(suite, name, date.fromisoformat(self.noted.eval_date)))
        for stage, place in self._plans.placed(suite):
            inputs, key = whole if stage.whole_suite else own, dg.AssetKey([suite, stage.name])
            found[stage.name] = _Asset(stage, place, inputs, key, None if stage.whole_suite else name)
        return found

    def _left_out_of(self, suite: str) -> list[_Asset]:
        chain = [one.stage for (of, _), one in self._assets.items() if of == suite]
        steps = {step.stage: step for step in self.noted.steps if step.suite == suite}
        return [self._assets[suite, stage.name] for stage in left_out(chain, steps)]

    @property
    def keys(self) -> list[dg.AssetKey]:
        """All assets of the run's suites."""
        return [one.key for one in self._assets.values()]

    @property
    def _selected(self) -> frozenset[dg.AssetKey]:
        made = [one for step in self.noted.steps if (one := self._assets.get((step.suite, step.stage)))]
        return frozenset(one.key for one in (*made, *self._left_out))

    def is_new(self) -> bool:
        """Whether there is anything to tell that Dagster does not know; what is left of half a telling is removed.

        Of a model version that was removed with its results, nothing is told.
        """
        workspace, name = self._plans.workspace, self.noted.model_version
        key = RecordKey.of_model_version(name)
        if name and workspace.is_retired(name) and workspace.record.header(MODEL_VERSIONS, key) is None:
            return False
        known = self._instance.get_run_by_id(self.noted.run_id)
        if known is not None and known.is_finished:
            return False
        if known is not None:
            self._instance.delete_run(known.run_id)
        return bool(self._selected)

    def add(self) -> None:
        """Adds the run, as one that has not begun."""
        noted, name = self.noted, self._run.job_name
        scope = "" if noted.scope == FULL else noted.scope
        tags = {PARTITION_NAME_TAG: noted.model_version, EVAL_DATE: noted.eval_date, SCOPE: scope, EPOCH: noted.epoch}
        tags |= {TERMINAL: noted.run_id if self._command != OF_DEV else "", CODE_LOCATION_TAG: LOCATION}
        planned = self._plans.job(name, self._selected) if len(noted.suites) <= _MOST_PLANNED else None
        run = self._instance.run_domain.construct_run_with_snapshots(
            job_name=name,
            run_id=noted.run_id,
            run_config={},
            asset_selection=self._selected,
            resolved_op_selection=None,
            step_keys_to_execute=None,
            status=dg.DagsterRunStatus.NOT_STARTED,
            tags={key: value for key, value in tags.items() if value},
            root_run_id=None,
            parent_run_id=None,
            job_snapshot=planned[0].get_job_snapshot() if planned else None,
            execution_plan_snapshot=planned[1] if planned else None,
            parent_job_snapshot=None,
            remote_job_origin=job_origin(name),
            asset_graph=cast("Any", planned[0].asset_layer.asset_graph) if planned else None,
        )
        self._instance.run_storage.add_historical_run(run, datetime.fromtimestamp(noted.began, UTC))

    def begin(self) -> None:
        """Tells that the run begins."""
        self._store(self._run.began(self.noted.began))

    def step(self, step: NotedStep, known: KnownResults) -> None:
        """Tells of a step, and of what it made unless something later is known."""
        asset = self._assets.get((step.suite, step.stage))
        if asset is None:
            return
        name = step_of(asset.key)
        self._store(self._run.step_began(name, step.began))
        if step.result is None:
            self._miss(asset, step.ended, known)
        elif not known.is_later(asset.key, asset.partition, step.ended):
            self._make(asset, step, known)
        if step.error:
            self._failed.append(self._store(self._run.step_failed(name, step.error, step.ended)))
        else:
            self._store(self._run.step_ended(name, step.began, step.ended))

    def end(self) -> None:
        """Tells of what was left out, and that the run has ended.

        Nothing is told of the assets themselves: what a run never began with has not failed.
        """
        for asset in self._left_out:
            self._store(self._run.step_skipped(step_of(asset.key), self.noted.ended))
        self._store(self._run.ended(self.noted.status, self.noted.ended, self._failed))

    def finish(self) -> None:
        """Ends the run, which is known for good from now on."""
        noted, runs = self.noted, self._instance.run_storage
        for entry in (self._run.began(noted.began), self._run.ended(noted.status, noted.ended, self._failed)):
            at = datetime.fromtimestamp(entry.timestamp, UTC)
            runs.handle_run_event(noted.run_id, entry.get_dagster_event(), at)

    def _make(self, asset: _Asset, step: NotedStep, known: KnownResults) -> None:
        """Tells of a materialisation and the results of its checks."""
        made, key, partition = asset.made(step), asset.key, asset.partition
        assert made.data_version is not None
        version, inputs = made.data_version.value, [self._assets[step.suite, name] for name in asset.place.after]
        sources = {one.key: known.source(one.key, one.partition is not None, partition) for one in inputs}
        tags = version_tags(asset.code(step) or self.noted.run_id, version, sources)
        entry = self._store(self._run.materialised(key, partition, made, tags, step.ended))
        record = stored(self._instance.event_log_storage, entry)
        known.noted(key, partition, version, record)
        blocking = {check.name: check.blocking for check in asset.stage.checks}
        for result in made.check_results or ():
            event = self._run.checked(key, partition, result, blocking[str(result.check_name)], record, step.ended)
            self._store(event)

    def _miss(self, asset: _Asset, at: float, known: KnownResults) -> None:
        """Tells that an asset was to be made and was not, unless something later is known."""
        if known.is_later(asset.key, asset.partition, at):
            return
        self._store(self._run.planned(asset.key, asset.partition, at))
        for check in asset.stage.checks:
            with suppress(IntegrityError):  # left of half a telling: Dagster does not remove it with the run
                self._store(self._run.check_planned(asset.key, check.name, asset.partition, at))

    def _store(self, entry: dg.EventLogEntry) -> dg.EventLogEntry:
        self._instance.event_log_storage.store_event(entry)
        return entry

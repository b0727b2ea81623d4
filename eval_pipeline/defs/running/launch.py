"""Runs jobs in this process for the command line, on the instance that the UI shows.

Each model version has one Dagster run, or several if there are many suites. If that makes several runs, nothing is
published before the last: then all evaluations are published together, by one more run for each model version.
"""

import atexit
import gc
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

import dagster as dg
from dagster._core.execution.job_execution_result import JobExecutionResult

from eval_pipeline.chain.evaluation import COMPARING, DELIVERING, INGESTING
from eval_pipeline.core.home import Home
from eval_pipeline.core.interrupts import handlers_kept
from eval_pipeline.core.model import Partition
from eval_pipeline.defs.assets.partitions import CANARY, DIMENSION, EARLIER, EPOCH, EVAL_DATE, SCOPE, earlier_tag
from eval_pipeline.defs.assets.resources import EvaluationResource
from eval_pipeline.defs.assets.suite_assets import suite_definitions
from eval_pipeline.defs.automation.jobs import ALL, suite_job_name
from eval_pipeline.defs.automation.sensors import retired, unregistered
from eval_pipeline.defs.running.instance import PROCESS, open_instance, process_tag, sweep_home
from eval_pipeline.defs.running.origin import execute_here
from eval_pipeline.defs.running.outcomes import Finished, finished, interrupted, uncompared
from eval_pipeline.operations.keeping import REPORTS
from eval_pipeline.operations.publication import Publication
from eval_pipeline.store.tables import STATISTICS
from eval_pipeline.workspace.scope import FULL, Scope
from eval_pipeline.workspace.workspace import Progress, Workspace

QUIET: Mapping[str, Any] = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}

SUITES_A_RUN = 40
"""Suites that one Dagster run evaluates at most: planning a run takes time that grows faster than its steps."""
SUITES_DELIVERED_A_RUN = 200
"""Suites that one Dagster run publishes and reports at most, which are fewer steps a suite."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to run.

    Attributes:
        partitions: all with the same evaluation date.
        epoch: freshness epoch; a new one asks the models again.
        with_report: also make the report files.
        canary: stop if hardly any of the first answers is readable.
        publication: may have further evaluations, which are published with those of the run.
    """

    partitions: Sequence[Partition]
    scope: Scope = field(default_factory=Scope)
    epoch: str = ""
    with_report: bool = True
    canary: bool = True
    publication: Publication | None = None


def run(home: Home, request: Request, progress: Progress) -> Iterator[Finished]:
    """Runs the suites for each model version; a failing suite does not stop the others."""
    gc.freeze()  # imported objects are permanent, so the collector need not scan them
    atexit.register(gc.unfreeze)  # otherwise DuckDB finds its own objects alive at exit and prints a long warning
    with open_instance(home) as instance:
        sweep_home(home, instance)
        yield from _run(instance, Workspace(home), request, progress)


def _run(
    instance: dg.DagsterInstance, workspace: Workspace, request: Request, progress: Progress
) -> Iterator[Finished]:
    named = dict.fromkeys([*unregistered(instance, workspace), *(place.model_version for place in request.partitions)])
    instance.add_dynamic_partitions(DIMENSION, list(named))
    for name in retired(instance, workspace):
        instance.delete_dynamic_partition(DIMENSION, name)
    tags = {EVAL_DATE: request.partitions[0].eval_date.isoformat(), EPOCH: request.epoch}
    tags[SCOPE] = "" if request.scope.label() == FULL else request.scope.label()
    tags[CANARY] = "" if request.canary else "false"
    tags = {name: value for name, value in tags.items() if value}
    publication = request.publication or Publication(workspace)
    command = _Command(instance, EvaluationResource(workspace, progress, publication=publication), tags, request)
    try:
        yield from command.run()
    finally:
        # Also if the command is interrupted, or no step got as far as publishing.
        publication.waiting = False
        publication.publish()


class _Command:
    """The Dagster runs of one command."""

    def __init__(
        self, instance: dg.DagsterInstance, evaluation: EvaluationResource, tags: Mapping[str, str], request: Request
    ) -> None:
        self._instance = instance
        self._evaluation = evaluation
        self._tags = tags
        self._partitions = request.partitions
        self._skipped = () if request.with_report else REPORTS
        self._last = {partition.suite: partition.model_version for partition in request.partitions}
        self._broken: set[str] = set()
        self._uncompared: set[str] = set()

    def run(self) -> Iterator[Finished]:
        """Evaluates, compares and delivers."""
        runs = list(self._runs())
        publication = self._publication
        publication.waiting = len(runs) > 1
        yield from self._evaluate(runs)
        # If no evaluation was completed, there is nothing to compare yet.
        record = self._evaluation.workspace.record
        evaluated = {found.suite for found in record.partitions(STATISTICS)} if self._uncompared else set()
        left = sorted((self._uncompared - self._broken) & evaluated)
        for suites in batches(left, SUITES_A_RUN):
            # A successful comparison needs no mention, as the earlier failure is reported.
            yield from self._failed(suites, "", lambda key: key[1] in COMPARING)
        if publication.waiting:
            publication.waiting = False
            yield from self._deliver()

    @property
    def _publication(self) -> Publication:
        assert self._evaluation.publication is not None
        return self._evaluation.publication

    def _runs(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Yields model version and suites of each run that evaluates."""
        for name in dict.fromkeys(partition.model_version for partition in self._partitions):
            chosen = [partition.suite for partition in self._partitions if partition.model_version == name]
            for suites in batches(chosen, SUITES_A_RUN):
                yield name, suites

    def _evaluate(self, runs: Sequence[tuple[str, Sequence[str]]]) -> Iterator[Finished]:
        read: set[str] = set()
        earlier: dict[str, list[str]] = {}
        for name, planned in runs:
            suites = [suite for suite in planned if suite not in self._broken]
            if not suites:
                continue
            gc.collect()  # frees cycles of the previous run; during a run, the collector hardly ever runs
            # The first run that needs them reads files and cases; the last run compares all model versions.
            done = {(suite, asset) for suite in read for asset in INGESTING}
            done |= {(suite, asset) for suite in suites if self._last[suite] != name for asset in COMPARING}
            job = self._job(suites, partial(_remains, done))
            result = _execute(self._instance, job, name, self._tags, earlier.setdefault(name, []))
            earlier[name].append(result.run_id)
            for found in finished(result, suites, name, self._evaluation.examples):
                if not found.model_version:
                    self._broken.add(found.suite)
                yield found
            read.update(suites)
            self._uncompared |= uncompared(job, result) & {suite for suite in suites if self._last[suite] == name}

    def _deliver(self) -> Iterator[Finished]:
        """Publishes all evaluations in the first of these runs; each run reports those of one model version."""
        closed, compared = self._publication.closed, self._publication.compared
        for name in dict.fromkeys(partition.model_version for partition in self._partitions):
            own = [p.suite for p in self._partitions if p.model_version == name and p in closed]
            for suites in batches(own, SUITES_DELIVERED_A_RUN):
                now = {suite for suite in suites if suite in compared and self._last[suite] == name}
                compared -= now
                yield from self._failed(suites, name, partial(_delivers, now))
        # Of these suites, the last model version failed.
        for suites in batches(sorted(compared), SUITES_DELIVERED_A_RUN):
            yield from self._failed(suites, "", lambda key: key[1] in DELIVERING and key[1] in COMPARING)

    def _failed(
        self, suites: Sequence[str], model_version: str, chosen: Callable[[tuple[str, str]], bool]
    ) -> Iterator[Finished]:
        """Runs further assets of suites; yields what fails."""
        job = self._job(suites, chosen)
        result = _execute(self._instance, job, model_version or None, self._tags)
        for found in finished(result, suites, model_version, self._evaluation.examples):
            if found.errors:
                yield found

    def _job(self, suites: Sequence[str], chosen: Callable[[tuple[str, str]], bool]) -> dg.JobDefinition:
        return _job(self._evaluation, suites, lambda key: key[1] not in self._skipped and chosen(key))


def _remains(done: Collection[tuple[str, str]], key: tuple[str, str]) -> bool:
    """Whether an asset of a suite is still to be made."""
    return key not in done


def _delivers(compared: Collection[str], key: tuple[str, str]) -> bool:
    """Whether an asset delivers an evaluation, or the comparisons of one of these suites."""
    suite, asset = key
    return asset in DELIVERING and (asset not in COMPARING or suite in compared)


def batches(suites: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Splits suites, in order, into as few parts of at most `size` suites as possible, of nearly equal length."""
    count = -(-len(suites) // size)
    for number in range(count):
        yield suites[len(suites) * number // count : len(suites) * (number + 1) // count]


def _execute(
    instance: dg.DagsterInstance,
    job: dg.JobDefinition,
    model_version: str | None,
    tags: Mapping[str, str],
    earlier: Sequence[str] = (),
) -> JobExecutionResult:
    """Runs a job; `earlier` are the ids of the runs that have a budget in common with it."""
    run_id = str(uuid4())
    own = {**tags, PROCESS: process_tag(run_id)}
    if earlier:
        own[EARLIER] = earlier_tag(run_id, earlier)
    keys = job.asset_layer.selected_asset_keys
    try:
        with handlers_kept():
            result = execute_here(job, instance, run_id, keys, partition_key=model_version, tags=own, run_config=QUIET)
    except dg.DagsterExecutionInterruptedError:
        raise KeyboardInterrupt from None
    if interrupted(result):
        raise KeyboardInterrupt
    return result


def _job(
    evaluation: EvaluationResource, suites: Sequence[str], chosen: Callable[[tuple[str, str]], bool]
) -> dg.JobDefinition:
    """Returns a job over the chosen assets of the suites, with the caller's workspace and progress as resource.

    It is built from these suites alone, which is faster than loading the code location.
    """
    loaded = [suite_definitions(evaluation.workspace.suite(suite), evaluation.workspace) for suite in suites]
    assets = [asset for found in loaded for asset in found.assets or () if isinstance(asset, dg.AssetsDefinition)]
    keys = [asset.key for asset in assets if chosen((asset.key.path[0], asset.key.path[-1]))]
    name = suite_job_name(suites[0]) if len(suites) == 1 else ALL
    job = dg.define_asset_job(name, dg.AssetSelection.assets(*keys))
    bound = dg.Definitions(jobs=[job], resources={"evaluation": evaluation}, executor=dg.in_process_executor)
    return dg.Definitions.merge(bound, *loaded).resolve_job_def(name)

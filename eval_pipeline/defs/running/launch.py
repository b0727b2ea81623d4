"""Runs jobs in this process for the command line, on the instance that the UI shows.

Each model version has one Dagster run, or several if there are many suites.
"""

import atexit
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import dagster as dg
from dagster._core.execution.job_execution_result import JobExecutionResult

from eval_pipeline.chain.evaluation import COMPARING, INGESTING
from eval_pipeline.core.home import Home
from eval_pipeline.core.interrupts import handlers_kept
from eval_pipeline.core.model import Partition
from eval_pipeline.defs.assets.partitions import CANARY, DIMENSION, EARLIER, EPOCH, EVAL_DATE, SCOPE, earlier_tag
from eval_pipeline.defs.assets.resources import EvaluationResource
from eval_pipeline.defs.assets.suite_assets import suite_definitions
from eval_pipeline.defs.automation.failures import asset_of, error_of, suite_of
from eval_pipeline.defs.automation.jobs import ALL, suite_job_name
from eval_pipeline.defs.automation.sensors import retired, unregistered
from eval_pipeline.defs.running.instance import PROCESS, open_instance, process_tag, sweep_home
from eval_pipeline.defs.running.origin import execute_here
from eval_pipeline.operations.keeping import REPORTS
from eval_pipeline.store.tables import STATISTICS
from eval_pipeline.workspace.scope import FULL, Scope
from eval_pipeline.workspace.workspace import Progress, Workspace

QUIET: Mapping[str, Any] = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}

SUITES_A_RUN = 40
"""Suites that one Dagster run evaluates at most: planning a run takes time that grows faster than its steps."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to run.

    Attributes:
        partitions: all with the same evaluation date.
        epoch: freshness epoch; a new one asks the models again.
        with_report: also make the report files.
        canary: stop if hardly any of the first answers is readable.
    """

    partitions: Sequence[Partition]
    scope: Scope = field(default_factory=Scope)
    epoch: str = ""
    with_report: bool = True
    canary: bool = True


@dataclass(frozen=True, slots=True)
class Finished:
    """The result of one suite for one model version; `model_version` is empty if the suite's files or cases are wrong.

    Attributes:
        errors: a sentence for each failed step, and for each failed check that is not a warning.
        incomplete: whether steps were left out, so that there is nothing to show.
    """

    suite: str
    model_version: str
    errors: tuple[str, ...]
    incomplete: bool


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
    evaluation = EvaluationResource(workspace, progress)
    skipped = () if request.with_report else REPORTS
    last = {partition.suite: partition.model_version for partition in request.partitions}
    read: set[str] = set()
    broken: set[str] = set()
    uncompared: set[str] = set()
    for name in dict.fromkeys(partition.model_version for partition in request.partitions):
        chosen = [p.suite for p in request.partitions if p.model_version == name and p.suite not in broken]
        earlier: list[str] = []
        for suites in batches(chosen, SUITES_A_RUN):
            gc.collect()  # frees cycles of the previous run; during a run, the collector hardly ever runs
            # The first run that needs them reads files and cases; the last run compares all model versions.
            done = {(suite, asset) for suite in read for asset in INGESTING}
            done |= {(suite, asset) for suite in suites if last[suite] != name for asset in COMPARING}
            job = _job(evaluation, suites, lambda key: key not in done and key[1] not in skipped)  # noqa: B023
            result = _execute(instance, job, name, tags, earlier)
            earlier.append(result.run_id)
            for found in _finished(result, suites, name, evaluation.examples):
                if not found.model_version:
                    broken.add(found.suite)
                yield found
            read.update(suites)
            uncompared |= _uncompared(job, result) & {suite for suite in suites if last[suite] == name}
    # If no evaluation was completed, there is nothing to compare yet.
    evaluated = {found.suite for found in workspace.record.partitions(STATISTICS)} if uncompared else set()
    for left in batches(sorted((uncompared - broken) & evaluated), SUITES_A_RUN):
        job = _job(evaluation, left, lambda key: key[1] in COMPARING and key[1] not in skipped)
        for found in _finished(_execute(instance, job, None, tags), left, "", evaluation.examples):
            if found.errors:  # a successful comparison needs no mention, as the earlier failure is reported
                yield found


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
    if _interrupted(result):
        raise KeyboardInterrupt
    return result


def _uncompared(job: dg.JobDefinition, result: JobExecutionResult) -> set[str]:
    """Returns the suites whose comparison the run skipped because a step of the evaluation had failed.

    Which steps are skipped depends on what failed: `trends` needs coverage, `gold_suspects` does not. The other model
    versions are compared anyway, because the UI would otherwise show steps as failed that were never tried. Suites in
    which a comparison step itself failed are left out, as it would fail again.
    """
    begun, failed = set(), set()
    for event in result.all_events:
        if event.event_type == dg.DagsterEventType.STEP_START:
            begun.add((suite_of(event), asset_of(event)))
        elif event.is_step_failure and asset_of(event) in COMPARING:
            failed.add(suite_of(event))
    planned = {(key.path[0], key.path[-1]) for key in job.asset_layer.selected_asset_keys}
    return {suite for suite, asset in planned - begun if asset in COMPARING} - failed


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


def _finished(
    result: JobExecutionResult,
    suites: Sequence[str],
    model_version: str,
    examples: Mapping[tuple[str, str, str], str],
) -> list[Finished]:
    errors: dict[str, list[str]] = {suite: [] for suite in suites}
    incomplete: set[str] = set()
    unreadable: set[str] = set()
    for event in result.all_events:
        if not event.step_key:
            continue
        suite, asset = suite_of(event), asset_of(event)
        # Failed checks about other model versions are not this run's errors; its own are checked at the end.
        compared = asset in COMPARING and event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION
        if not compared and (sentence := error_of(event)):
            shown = examples.get((suite, asset, model_version), "") if event.is_step_failure else ""
            errors[suite].append(f"{sentence} (e.g. {shown})" if shown else sentence)
        ended = event.is_step_failure or event.event_type == dg.DagsterEventType.STEP_SKIPPED
        if ended and asset not in COMPARING:
            incomplete.add(suite)
            if asset in INGESTING:
                unreadable.add(suite)
    return [
        Finished(suite, "" if suite in unreadable else model_version, tuple(found), suite in incomplete)
        for suite, found in errors.items()
    ]


def _interrupted(result: JobExecutionResult) -> bool:
    """Whether a signal ended the run; Dagster reports it as a failure of the interrupted step."""
    errors = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
    return any(error is not None and error.cls_name == "DagsterExecutionInterruptedError" for error in errors)

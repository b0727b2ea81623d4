"""Running jobs in this process for the command line: one run a model version, on the instance that the UI shows."""

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
from eval_pipeline.defs.assets.partitions import CANARY, DIMENSION, EPOCH, EVAL_DATE, SCOPE
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


@dataclass(frozen=True, slots=True)
class Request:
    """What to run.

    Attributes:
        partitions: all of one evaluation date.
        epoch: freshness epoch; another one asks the models anew.
        with_report: make the report files too.
        canary: stop where hardly any of the first answers can be read.
    """

    partitions: Sequence[Partition]
    scope: Scope = field(default_factory=Scope)
    epoch: str = ""
    with_report: bool = True
    canary: bool = True


@dataclass(frozen=True, slots=True)
class Finished:
    """How one suite came out for one model version; for none where its files or cases are wrong.

    Attributes:
        errors: a sentence for each step that failed and each check that did not pass and was not a warning.
        incomplete: not every step was done, so that there is nothing to show.
    """

    suite: str
    model_version: str
    errors: tuple[str, ...]
    incomplete: bool


def run(home: Home, request: Request, progress: Progress) -> Iterator[Finished]:
    """Runs the suites for each model version; a suite that fails does not stop the others."""
    gc.freeze()  # what is imported stays: no need to look for garbage in it
    atexit.register(gc.unfreeze)  # else DuckDB finds its own objects alive at the end, and says so at length
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
        if not chosen:
            continue
        gc.collect()  # what the run before left in cycles: within a run it is hardly ever looked for
        # Files and cases are read by the first run that needs them; the last one compares all model versions.
        done = {(suite, asset) for suite in read for asset in INGESTING}
        done |= {(suite, asset) for suite in chosen if last[suite] != name for asset in COMPARING}
        job = _job(evaluation, chosen, lambda key: key not in done and key[1] not in skipped)  # noqa: B023
        result = _execute(instance, job, name, tags)
        for found in _finished(result, chosen, name, evaluation.examples):
            if not found.model_version:
                broken.add(found.suite)
            yield found
        read.update(chosen)
        uncompared |= {suite for suite in chosen if last[suite] == name} - _compared(result)
    # Where no evaluation has ever come so far there is nothing to compare yet.
    evaluated = {found.suite for found in workspace.record.partitions(STATISTICS)} if uncompared else set()
    if left := sorted((uncompared - broken) & evaluated):
        job = _job(evaluation, left, lambda key: key[1] in COMPARING and key[1] not in skipped)
        for found in _finished(_execute(instance, job, None, tags), left, "", evaluation.examples):
            if found.errors:  # else that it was compared is not worth a word: what failed before is told
                yield found


def _execute(
    instance: dg.DagsterInstance, job: dg.JobDefinition, model_version: str | None, tags: Mapping[str, str]
) -> JobExecutionResult:
    run_id = str(uuid4())
    own = {**tags, PROCESS: process_tag(run_id)}
    keys = job.asset_layer.selected_asset_keys
    try:
        with handlers_kept():
            result = execute_here(job, instance, run_id, keys, partition_key=model_version, tags=own, run_config=QUIET)
    except dg.DagsterExecutionInterruptedError:
        raise KeyboardInterrupt from None
    if _interrupted(result):
        raise KeyboardInterrupt
    return result


def _compared(result: JobExecutionResult) -> set[str]:
    """Suites whose model versions the run began to compare: it does not where the evaluation before has failed.

    What the others have is compared all the same; and the UI would show as failed what was never tried.
    """
    begun = (event for event in result.all_events if event.event_type == dg.DagsterEventType.STEP_START)
    return {suite_of(event) for event in begun if asset_of(event) in COMPARING}


def _job(
    evaluation: EvaluationResource, suites: Sequence[str], chosen: Callable[[tuple[str, str]], bool]
) -> dg.JobDefinition:
    """A job over the chosen assets of the suites, with the caller's workspace and progress for a resource.

    Built from the suites that are run alone: quicker than loading the code location.
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
        # What the checks say of other model versions is not this run's; its own are looked at in the end.
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
    """Whether a signal ended the run: Dagster makes a failure of the step that it hit."""
    errors = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
    return any(error is not None and error.cls_name == "DagsterExecutionInterruptedError" for error in errors)

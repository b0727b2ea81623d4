"""Running jobs in this process for the command line: one run a model version, on the instance that the UI shows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import dagster as dg
from dagster._core.execution.execute_in_process_result import ExecuteInProcessResult

from eval_pipeline.core.home import Home
from eval_pipeline.defs.instance import open_instance, process_tags, sweep
from eval_pipeline.defs.jobs import ALL
from eval_pipeline.defs.partitions import DIMENSION, EPOCH, EVAL_DATE, SCOPE
from eval_pipeline.defs.resources import Evaluation
from eval_pipeline.defs.sensors import unregistered
from eval_pipeline.stages.scope import Scope
from eval_pipeline.stages.workspace import Progress, Workspace

UNPARTITIONED = ("raw_dataset", "cases")
QUIET: Mapping[str, Any] = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True, slots=True)
class Request:
    """What to run.

    Attributes:
        epoch: freshness epoch; another one asks the models anew.
        with_report: make the report files too.
    """

    suites: Sequence[str]
    model_versions: Sequence[str]
    eval_date: date
    scope: Scope = field(default_factory=Scope)
    epoch: str = ""
    with_report: bool = True


@dataclass(frozen=True, slots=True)
class Finished:
    """How one suite came out for one model version (empty for what is not partitioned).

    Attributes:
        errors: a sentence for each step that failed and each check that did not pass and was not a warning.
    """

    suite: str
    model_version: str
    errors: tuple[str, ...]


def run(home: Home, request: Request, progress: Progress) -> Iterator[Finished]:
    """Runs the suites for each model version; a suite that fails does not stop the others."""
    workspace = Workspace(home)
    instance = open_instance(home)
    sweep(instance)
    if new := unregistered(instance, workspace):
        instance.add_dynamic_partitions(DIMENSION, new)
    job = _job(Evaluation(workspace, progress))
    tags = {EVAL_DATE: request.eval_date.isoformat(), SCOPE: request.scope.label(), EPOCH: request.epoch}
    tags = {name: value for name, value in tags.items() if value} | process_tags()
    base = [dg.AssetKey([suite, name]) for suite in request.suites for name in UNPARTITIONED]
    result = job.execute_in_process(QUIET, instance, asset_selection=base, tags=tags, raise_on_error=False)
    broken = [found for found in _finished(result, request.suites, "") if found.errors]
    yield from broken
    usable = [suite for suite in request.suites if suite not in {found.suite for found in broken}]
    for name in request.model_versions if usable else ():
        keys = _partitioned_keys(job, usable, request.with_report)
        result = job.execute_in_process(
            QUIET, instance, partition_key=name, asset_selection=keys, tags=tags, raise_on_error=False
        )
        yield from _finished(result, usable, name)


def _job(evaluation: Evaluation) -> dg.JobDefinition:
    from eval_pipeline.definitions import defs

    job = defs.resolve_job_def(ALL)
    resource = dg.ResourceDefinition.hardcoded_resource(evaluation)
    return job.with_top_level_resources({**job.resource_defs, "evaluation": resource})


def _partitioned_keys(job: dg.JobDefinition, suites: Sequence[str], with_report: bool) -> list[dg.AssetKey]:
    skipped = set(UNPARTITIONED) if with_report else {*UNPARTITIONED, "report"}
    keys = sorted(job.asset_layer.selected_asset_keys)
    return [key for key in keys if key.path[0] in suites and key.path[-1] not in skipped]


def _finished(result: ExecuteInProcessResult, suites: Sequence[str], model_version: str) -> list[Finished]:
    errors: dict[str, list[str]] = {suite: [] for suite in suites}
    for event in result.all_events:
        sentence = _error_of(event)
        if sentence and event.step_key:
            # A step is called after its asset: suite__name.
            errors[event.step_key.rpartition("__")[0]].append(sentence)
    return [Finished(suite, model_version, tuple(found)) for suite, found in errors.items()]


def _error_of(event: dg.DagsterEvent) -> str | None:
    """What went wrong, for events that say so."""
    if event.is_step_failure:
        failure = event.step_failure_data
        if failure.user_failure_data is not None and failure.user_failure_data.description:
            return failure.user_failure_data.description
        return failure.error_display_string
    if event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
        found = event.asset_check_evaluation_data
        if not found.passed and found.severity == dg.AssetCheckSeverity.ERROR:
            return f"check {found.check_name}: {found.description}"
    return None

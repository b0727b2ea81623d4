"""Running jobs in this process for the command line: one run a model version, on the instance that the UI shows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import dagster as dg
from dagster._core.execution.execute_in_process_result import ExecuteInProcessResult

from eval_pipeline.core.home import Home
from eval_pipeline.defs.instance import open_instance, process_tags, sweep
from eval_pipeline.defs.jobs import ALL, INGEST, UNPARTITIONED
from eval_pipeline.defs.partitions import DIMENSION, EPOCH, EVAL_DATE, SCOPE, model_version
from eval_pipeline.defs.resources import Evaluation
from eval_pipeline.defs.sensors import unregistered
from eval_pipeline.defs.suite_assets import suite_definitions
from eval_pipeline.stages.scope import Scope
from eval_pipeline.stages.workspace import Progress, Workspace

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
    tags = {EVAL_DATE: request.eval_date.isoformat(), SCOPE: request.scope.label(), EPOCH: request.epoch}
    tags = {name: value for name, value in tags.items() if value} | process_tags()
    evaluation = Evaluation(workspace, progress)
    result = _job(INGEST, evaluation, request.suites, lambda name: name in UNPARTITIONED).execute_in_process(
        QUIET, instance, tags=tags, raise_on_error=False
    )
    broken = [found for found in _finished(result, request.suites, "") if found.errors]
    yield from broken
    usable = [suite for suite in request.suites if suite not in {found.suite for found in broken}]
    if not usable:
        return
    skipped = UNPARTITIONED if request.with_report else (*UNPARTITIONED, "report")
    job = _job(ALL, evaluation, usable, lambda name: name not in skipped)
    for name in request.model_versions:
        result = job.execute_in_process(QUIET, instance, partition_key=name, tags=tags, raise_on_error=False)
        yield from _finished(result, usable, name)


def _job(name: str, evaluation: Evaluation, suites: Sequence[str], chosen: Callable[[str], bool]) -> dg.JobDefinition:
    """A job over the chosen assets of the suites, with the caller's workspace and progress for a resource.

    Built from the suites that are run alone: quicker than loading the code location.
    """
    loaded = [suite_definitions(evaluation.workspace.suite(suite)) for suite in suites]
    assets = [asset for found in loaded for asset in found.assets or () if isinstance(asset, dg.AssetsDefinition)]
    keys = [asset.key for asset in assets if chosen(asset.key.path[-1])]
    job = dg.define_asset_job(
        name, dg.AssetSelection.assets(*keys), partitions_def=None if name == INGEST else model_version
    )
    bound = dg.Definitions(jobs=[job], resources={"evaluation": evaluation}, executor=dg.in_process_executor)
    return dg.Definitions.merge(bound, *loaded).resolve_job_def(name)


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

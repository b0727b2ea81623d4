"""Runs jobs in this process for `demo`, on the instance that the UI shows: one Dagster run for each model version."""

import atexit
import gc
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import uuid4

import dagster as dg

from eval_pipeline.chain.evaluation import COMPARING, INGESTING, chain_of
from eval_pipeline.core.system.interrupts import handlers_kept
from eval_pipeline.defs.assets.partitions import CANARY, DIMENSION, EPOCH, EVAL_DATE, SCOPE
from eval_pipeline.defs.assets.resources import EvaluationResource
from eval_pipeline.defs.automation.jobs import ALL, suite_job_name
from eval_pipeline.defs.automation.sensors import retired, unregistered
from eval_pipeline.defs.running.instance import PROCESS, open_instance, process_tag, sweep_home
from eval_pipeline.defs.running.origin import execute_here, job_over
from eval_pipeline.operations.runs.running import Finished, Request
from eval_pipeline.operations.upkeep.keeping import REPORTS
from eval_pipeline.workspace.asked.scope import FULL
from eval_pipeline.workspace.workspace import Progress, Workspace

QUIET: Mapping[str, Any] = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def launch(workspace: Workspace, request: Request, progress: Progress) -> Sequence[Finished]:
    """Runs the suites for each model version; a failing suite does not stop the others."""
    gc.freeze()  # imported objects are permanent, so the collector need not scan them
    atexit.register(gc.unfreeze)  # otherwise DuckDB finds its own objects alive at exit and prints a long warning
    evaluation = EvaluationResource(workspace, progress)
    versions = list(dict.fromkeys(place.model_version for place in request.partitions))
    with open_instance(workspace.home) as instance:
        sweep_home(workspace.home, instance)
        instance.add_dynamic_partitions(DIMENSION, list(dict.fromkeys([*unregistered(instance, workspace), *versions])))
        for name in retired(instance, workspace):
            instance.delete_dynamic_partition(DIMENSION, name)
        for name in versions:
            broken = {suite for (suite, of), found in evaluation.finished.items() if not of and found.incomplete}
            own = [place.suite for place in request.partitions if place.model_version == name]
            suites = [suite for suite in own if suite not in broken]
            if not suites:
                continue
            # The first run reads files and cases; the last compares all model versions.
            left_out = {*(() if request.with_report else REPORTS)}
            left_out |= {*(INGESTING if name != versions[0] else ())} | {*(COMPARING if name != versions[-1] else ())}
            _execute(instance, _job(evaluation, suites, left_out), name, _tags(request))
    return list(evaluation.finished.values())


def _tags(request: Request) -> dict[str, str]:
    tags = {EVAL_DATE: request.partitions[0].eval_date.isoformat(), EPOCH: request.epoch}
    tags[SCOPE] = "" if request.scope.label() == FULL else request.scope.label()
    tags[CANARY] = "" if request.canary else "false"
    return {name: value for name, value in tags.items() if value}


def _execute(instance: dg.DagsterInstance, job: dg.JobDefinition, model_version: str, tags: Mapping[str, str]) -> None:
    run_id = str(uuid4())
    own = {**tags, PROCESS: process_tag(run_id)}
    keys = job.asset_layer.selected_asset_keys
    try:
        with handlers_kept():
            result = execute_here(job, instance, run_id, keys, partition_key=model_version, tags=own, run_config=QUIET)
    except dg.DagsterExecutionInterruptedError:
        raise KeyboardInterrupt from None
    # Dagster reports a signal that ended the run as a failure of the interrupted step.
    errors = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
    if any(error is not None and error.cls_name == "DagsterExecutionInterruptedError" for error in errors):
        raise KeyboardInterrupt


def _job(evaluation: EvaluationResource, suites: Sequence[str], left_out: Collection[str]) -> dg.JobDefinition:
    """Returns the job of the suites without some of their assets."""
    sources = [evaluation.workspace.suite(suite) for suite in suites]
    chains = {source.name: chain_of(source.track() if source.header else None) for source in sources}
    keys = [dg.AssetKey([suite, s.name]) for suite, chain in chains.items() for s in chain if s.name not in left_out]
    return job_over(evaluation, suite_job_name(suites[0]) if len(suites) == 1 else ALL, keys)

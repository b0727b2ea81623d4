"""Materialising in a real instance, and what came of it."""

import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import dagster as dg
import pytest

from eval_pipeline.core.home import find_home
from eval_pipeline.core.system.interrupts import handlers_kept
from eval_pipeline.defs.assets.partitions import DIMENSION, EVAL_DATE
from eval_pipeline.defs.assets.resources import EvaluationResource
from eval_pipeline.defs.assets.suite_assets import suite_definitions
from eval_pipeline.defs.running import launch
from eval_pipeline.defs.running.instance import open_instance
from eval_pipeline.defs.running.origin import DEFINITIONS
from eval_pipeline.stages import score
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import Silent
from eval_pipeline_tests.support import DAY, Lab

TAGS = {EVAL_DATE: DAY.isoformat()}
REPORTS = {"report", "comparison_report"}
QUIET: dict[str, Any] = dict(launch.QUIET)
ASKING = ("small/raw_dataset", "small/cases", "small/generations")
SCORING = (*ASKING, "small/recovery_attempts", "small/evidence", "small/turn_metrics")
"""Assets of the first stages, where what is tested is seen after these: the whole chain takes three times as long."""


def materialise(
    lab: Lab,
    instance: dg.DagsterInstance,
    *suites: str,
    only: Sequence[str] = (),
    launched: Mapping[str, str] = TAGS,
    partition_key: str = "puppet",
) -> dg.ExecuteInProcessResult:
    """Runs the chain of the suites, or the assets `suite/name` of it."""
    workspace = lab.workspace()
    loaded = [suite_definitions(workspace.suites[name], workspace) for name in suites or ("small",)]
    keys = [asset.key for found in loaded for asset in found.assets or ()]
    keys = [key for key in keys if key.path[-1] not in REPORTS]
    keys = [key for key in keys if not only or key.to_user_string() in only]
    job = dg.define_asset_job("test", dg.AssetSelection.assets(*keys))
    resources = {"evaluation": EvaluationResource(workspace, Silent()).resource}
    bound = dg.Definitions(jobs=[job], resources=resources, executor=dg.in_process_executor)
    resolved = dg.Definitions.merge(bound, *loaded).resolve_job_def("test")
    key = partition_key if resolved.partitions_def else None
    with handlers_kept():  # Dagster gives SIGTERM the handler of SIGINT, and leaves it so
        return resolved.execute_in_process(
            QUIET, instance, partition_key=key, tags=dict(launched), raise_on_error=False
        )


def run_of(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRun:
    """A run as the instance has it by now."""
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run


def losing_a_turn(patch: pytest.MonkeyPatch, of: Callable[[Inputs], bool]) -> None:
    """Scoring loses a turn of some evaluations, so that a check blocks what comes after."""
    real = score.attempted_turns
    patch.setattr(score, "attempted_turns", lambda inputs: iter(list(real(inputs))[of(inputs) :]))


def stale(lab: Lab, instance: dg.DagsterInstance) -> dict[str, set[str]]:
    """What the UI would show as out of date, and for which kinds of reason: `code`, `data`, `dependencies`."""
    from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
    from dagster._core.loader import LoadingContextForTest

    workspace = lab.workspace()
    bound = dg.Definitions(resources={"evaluation": EvaluationResource(workspace, Silent())})
    loaded = suite_definitions(workspace.suites["small"], workspace)
    graph = dg.Definitions.merge(bound, loaded).resolve_asset_graph()
    resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
    found = {}
    for key in graph.get_all_asset_keys():
        partition = "puppet" if graph.get(key).partitions_def else None
        if key.path[-1] not in REPORTS and resolver.get_status(key, partition) == StaleStatus.STALE:
            found[key.path[-1]] = {cause.category.value.lower() for cause in resolver.get_stale_causes(key, partition)}
    return found


def versions(result: dg.ExecuteInProcessResult) -> dict[str, tuple[str, str]]:
    """Data and code version by asset, as the run recorded them."""
    found = {}
    for event in result.get_asset_materialization_events():
        tags = event.step_materialization_data.materialization.tags or {}
        name = event.asset_key.path[-1]
        found[name] = (tags["dagster/data_version"], tags["dagster/code_version"])
    return found


def dates(result: dg.ExecuteInProcessResult) -> dict[str, set[Any]]:
    """Evaluation dates that the materialisations of each suite say."""
    found: dict[str, set[Any]] = {}
    for event in result.get_asset_materialization_events():
        shown = event.step_materialization_data.materialization.metadata
        if "eval_date" in shown:
            found.setdefault(event.asset_key.path[0], set()).add(shown["eval_date"].value)
    return found


def loaded() -> None:
    """Prints what the code location has; for a child, as the settings are read when it is imported."""
    sys.modules.pop("eval_pipeline.defs.automation.schedules", None)
    from dagster._core.workspace.autodiscovery import loadable_targets_from_python_module

    (target,) = loadable_targets_from_python_module(DEFINITIONS, None)
    defs = target.target_definition
    dg.Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    repository = defs.get_repository_def()
    schedule = repository.get_schedule_def("nightly")
    os.environ["EVAL_NIGHTLY"] = "1"
    on = importlib.reload(sys.modules["eval_pipeline.defs.automation.schedules"]).nightly
    told = {
        "groups": sorted({graph.get(key).group_name for key in graph.get_all_asset_keys()}),
        "jobs": sorted(job.name for job in defs.resolve_all_job_defs() if not job.name.startswith("__")),
        "automatic": sorted(made.name for made in [*repository.schedule_defs, *repository.sensor_defs]),
        "schedule": [schedule.cron_schedule, [schedule.default_status.value, on.default_status.value]],
        "sensor": repository.get_sensor_def("register_model_versions").default_status.value,
    }
    print(json.dumps(told))


def nights() -> None:
    """Prints a line for each of the settings that it is given; for a child, as above."""
    import eval_pipeline.definitions  # noqa: F401  (what it imports need not be imported with each of the settings)

    for settings in json.loads(sys.argv[1]):
        if not (child := os.fork()):
            os.environ.update(settings)
            _nights()
            sys.stdout.flush()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


def _nights() -> None:
    """Prints four nights around the end of summer time, with their run keys."""
    from dagster._utils.schedules import schedule_execution_time_iterator

    from eval_pipeline import definitions
    from eval_pipeline.core.system.days import today
    from eval_pipeline.defs.automation import schedules

    importlib.reload(schedules)
    defs = importlib.reload(definitions).defs
    schedule = defs.resolve_schedule_def("nightly")
    begin = datetime(2026, 10, 23, 12, tzinfo=UTC).timestamp()
    ticks = schedule_execution_time_iterator(begin, schedule.cron_schedule, schedule.execution_timezone)
    found = []
    with open_instance(find_home()) as instance:
        instance.add_dynamic_partitions(DIMENSION, ["a"])
        for tick in islice(ticks, 4):
            told = {"scheduled_execution_time": tick, "repository_def": defs.get_repository_def()}
            with dg.build_schedule_context(instance, **told) as context:
                (request,) = schedule.evaluate_tick(context).run_requests
            found.append([tick.astimezone(UTC).isoformat(timespec="minutes")[:16], request.run_key])
    print(json.dumps([found, str(today())]))

"""The nightly evaluation of every active model version."""

import os
from collections.abc import Iterator

import dagster as dg

from eval_pipeline.chain.evaluation import chain_of
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.home import find_home
from eval_pipeline.core.installed.plugins import PluginError
from eval_pipeline.core.model_versions import ModelVersion, PromptedVersion
from eval_pipeline.core.system.days import day_of, time_zone
from eval_pipeline.defs.assets.partitions import DIMENSION, EPOCH, EVAL_DATE, PART, RESCORES
from eval_pipeline.defs.automation.jobs import ALL
from eval_pipeline.defs.dagster_inside.running import RUN_KEY_TAG, SCHEDULE_NAME_TAG, is_valid_cron_schedule
from eval_pipeline.providers.registry import traits_of
from eval_pipeline.suites.prompts import prompt_of
from eval_pipeline.workspace.workspace import Workspace

CRON = "EVAL_NIGHTLY_CRON"
"""Environment variable: time of the nightly run as a cron expression, in the project's time zone."""
TWO_O_CLOCK = "0 2 * * *"
NIGHTLY = "EVAL_NIGHTLY"
"""Environment variable: `1` enables the schedules by default."""
_ON = os.environ.get(NIGHTLY) == "1"


def nightly_cron() -> str:
    """Returns when nights begin, as a cron expression.

    Raises:
        UsageError: the environment variable holds none.
    """
    told = os.environ.get(CRON) or TWO_O_CLOCK
    if not is_valid_cron_schedule(told):
        raise UsageError(f"{CRON} is '{told}', which is no cron expression; expected one such as '{TWO_O_CLOCK}'")
    return told


@dg.schedule(
    cron_schedule=nightly_cron(),
    job_name=ALL,
    execution_timezone=time_zone().key,
    default_status=dg.DefaultScheduleStatus.RUNNING if _ON else dg.DefaultScheduleStatus.STOPPED,
    description="Evaluates every active model version on every suite, but for recorded ones, also with prompts of the "
    "suites that are `nightly`; asks the models anew each night, a part where `nightly` of the model version says so.",
)
def nightly(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """Requests one run per model version, all with the same evaluation date, which is also the freshness epoch.

    The run key consists of date and name. Dagster compares it only with runs of the same tick, so what another tick of
    the date has launched is left out here: a model version is asked for once a date, e.g. with an hourly cron.
    """
    night = day_of(context.scheduled_execution_time.timestamp())
    day = night.isoformat()
    registered = set(context.instance.get_dynamic_partitions(DIMENSION))
    workspace = Workspace(find_home())
    # Recorded predictions do not change from night to night.
    offered = [v for v in workspace.model_versions.values() if workspace.is_offered(v) and not _is_recorded(v)]
    suites = {v.name: list(_asking(workspace, v)) for v in offered if isinstance(v, PromptedVersion)}
    active = [v for v in offered if v.name in registered and suites.get(v.name, True)]
    if not active:
        yield dg.SkipReason("no active model version is registered as a partition")
    launched = _launched(context.instance, day)
    due = [version for version in active if _run_key(day, version) not in launched]
    if active and not due:
        yield dg.SkipReason(f"every active model version has been asked for on {day}")
    for version in due:
        tags = {EVAL_DATE: day, EPOCH: day, RESCORES: "true"}
        if version.nightly is not None and version.nightly.asks_part(night):
            tags[PART] = version.nightly.part
        chosen = [key for suite in suites.get(version.name, ()) for key in _assets(workspace, suite)]
        yield dg.RunRequest(
            run_key=_run_key(day, version), partition_key=version.name, tags=tags, asset_selection=chosen or None
        )


def _run_key(day: str, version: ModelVersion) -> str:
    return f"{day}:{version.name}"


def _launched(instance: dg.DagsterInstance, day: str) -> set[str]:
    """Returns the run keys of a date; without runs that a tick has made but not launched, as it does so on going on."""
    runs = instance.get_runs(dg.RunsFilter(tags={SCHEDULE_NAME_TAG: nightly.name, EVAL_DATE: day}))
    return {run.tags.get(RUN_KEY_TAG, "") for run in runs if run.status != dg.DagsterRunStatus.NOT_STARTED}


def _asking(workspace: Workspace, version: PromptedVersion) -> Iterator[str]:
    """Yields the suites that nights ask with the model version's prompt."""
    for name, source in workspace.suites.items():
        prompt = prompt_of(source, version)
        if prompt is not None and prompt.nightly:
            yield name


def _assets(workspace: Workspace, suite: str) -> Iterator[dg.AssetKey]:
    return (dg.AssetKey([suite, stage.name]) for stage in chain_of(workspace.track(suite)))


def _is_recorded(version: ModelVersion) -> bool:
    try:
        return traits_of(version.provider).recorded
    except PluginError:
        return False  # its run will report the problem with the provider

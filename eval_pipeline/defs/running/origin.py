"""Runs of the command line in the places where the UI looks for runs of a job.

The UI's timeline and its pages of jobs list the runs that say which code location their job is from. A run of the
command line is of the same job, from the same code; so it says so too.
"""

import sys
from collections.abc import Collection, Mapping

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.definitions.repository_definition import SINGLETON_REPOSITORY_NAME
from dagster._core.execution.api import create_execution_plan, execute_run
from dagster._core.execution.job_execution_result import JobExecutionResult
from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.storage.tags import PARTITION_NAME_TAG
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

LOCATION = "eval_pipeline"
"""Name of the code location, in `workspace.yaml` too."""
DEFINITIONS = "eval_pipeline.definitions"

TERMINAL = ".dagster/eval_pipeline/terminal"
"""Tag of a run of the command line: its own id, since a re-execution in the UI copies the tags of its parent."""


def job_origin(job_name: str) -> RemoteJobOrigin:
    """Where a job is from: what the UI has of a job of `eval-pipeline dev`."""
    target = LoadableTargetOrigin(executable_path=sys.executable, module_name=DEFINITIONS)
    location = ManagedGrpcPythonEnvCodeLocationOrigin(target, LOCATION)
    return RemoteRepositoryOrigin(location, SINGLETON_REPOSITORY_NAME).get_job_origin(job_name)


def execute_here(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    run_id: str,
    assets: Collection[dg.AssetKey],
    *,
    partition_key: str | None,
    tags: Mapping[str, str],
    run_config: Mapping[str, object],
) -> JobExecutionResult:
    """Runs a job in this process, as a run of the job of that name in the code location.

    Args:
        job: has the assets and no others.
        instance: what the UI shows.
        run_id: of the new run.
        assets: what a re-execution from the UI does again; without them it would do the whole job.
        partition_key: None for a job without partitions.
        tags: of the run.
        run_config: as Dagster has it.
    """
    own = {**tags, TERMINAL: run_id} | ({PARTITION_NAME_TAG: partition_key} if partition_key else {})
    plan = create_execution_plan(InMemoryJob(job), run_config=run_config, tags=own)
    run = instance.create_run_for_job(
        job,
        execution_plan=plan,
        run_id=run_id,
        run_config=run_config,
        tags=own,
        asset_selection=set(assets),
        remote_job_origin=job_origin(job.name),
    )
    return execute_run(InMemoryJob(job), run, instance)


def is_of_command_line(run: dg.DagsterRun) -> bool:
    """Whether the command line runs or ran it: its terminal is told what goes wrong."""
    return run.tags.get(TERMINAL) == run.run_id

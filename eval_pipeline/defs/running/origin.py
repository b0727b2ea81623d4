"""Makes runs of the command line appear where the UI shows runs of a job.

The UI's timeline and job pages list the runs that name the code location of their job. A run of the command line uses
the same job and code, so it names that location, too.
"""

import sys
from collections.abc import Collection, Mapping

import dagster as dg

from eval_pipeline.defs.assets.resources import EvaluationResource
from eval_pipeline.defs.assets.suite_assets import suite_definitions
from eval_pipeline.defs.dagster_inside.running import (
    PARTITION_NAME_TAG,
    SINGLETON_REPOSITORY_NAME,
    InMemoryJob,
    JobExecutionResult,
    LoadableTargetOrigin,
    ManagedGrpcPythonEnvCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
    create_execution_plan,
    execute_run,
)

LOCATION = "eval_pipeline"
"""Name of the code location, also used in `workspace.yaml`."""
DEFINITIONS = "eval_pipeline.definitions"

TERMINAL = ".dagster/eval_pipeline/terminal"
"""Tag of a run of the command line. Its value is the run's id, since re-executions in the UI copy tags."""


def job_origin(job_name: str) -> RemoteJobOrigin:
    """Returns the origin of a job, equal to that of the same job in `eval-pipeline dev`."""
    target = LoadableTargetOrigin(executable_path=sys.executable, module_name=DEFINITIONS)
    location = ManagedGrpcPythonEnvCodeLocationOrigin(target, LOCATION)
    return RemoteRepositoryOrigin(location, SINGLETON_REPOSITORY_NAME).get_job_origin(job_name)


def job_over(evaluation: EvaluationResource, name: str, keys: Collection[dg.AssetKey]) -> dg.JobDefinition:
    """Returns a job over assets, with the caller's workspace and progress as resource.

    It is built from their suites alone, which is faster than loading the code location.
    """
    workspace, suites = evaluation.workspace, sorted({key.path[0] for key in keys})
    loaded = [suite_definitions(workspace.suite(suite), workspace) for suite in suites]
    job = dg.define_asset_job(name, dg.AssetSelection.assets(*keys))
    bound = dg.Definitions(jobs=[job], resources={"evaluation": evaluation.resource}, executor=dg.in_process_executor)
    return dg.Definitions.merge(bound, *loaded).resolve_job_def(name)


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
    """Runs a job in this process, recorded as a run of the job of that name in the code location.

    Args:
        job: contains exactly the assets to run.
        instance: the instance that the UI shows.
        run_id: id of the new run.
        assets: recorded as the run's selection, so that a re-execution in the UI does not run the whole job.
        partition_key: None for a job without partitions.
        tags: tags of the run.
        run_config: Dagster's run configuration.
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
    """Whether the run was started on the command line, which reports errors on its terminal."""
    return run.tags.get(TERMINAL) == run.run_id

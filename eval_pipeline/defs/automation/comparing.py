"""Comparing what is there after an evaluation has failed: what all model versions share does not stay red for that.

A run evaluates one model version and then compares all. Where the evaluation fails, Dagster skips the comparison, which
the UI shows as failed until it is made again; yet it may be made of what the others have.
"""

from collections.abc import Iterator

import dagster as dg

from eval_pipeline.chain.evaluation import COMPARING, INGESTING
from eval_pipeline.core.home import find_home
from eval_pipeline.defs.assets.partitions import EVAL_DATE
from eval_pipeline.defs.automation.failures import asset_of, suite_of
from eval_pipeline.suites import find_suites

COMPARE = "compare_suites"


@dg.definitions
def comparing() -> dg.Definitions:
    """The job that compares the model versions of suites, and the sensor that asks for it."""
    suites = list(find_suites(find_home().suite_folders))
    if not suites:
        return dg.Definitions()
    keys = [dg.AssetKey([suite, name]) for suite in suites for name in COMPARING]
    job = dg.define_asset_job(
        COMPARE, dg.AssetSelection.assets(*keys), description="Compares the model versions of every suite; asks nobody."
    )

    @dg.run_status_sensor(
        name="compare_after_failure",
        run_status=dg.DagsterRunStatus.FAILURE,
        default_status=dg.DefaultSensorStatus.RUNNING,
        request_job=job,
        description="Compares the model versions of a suite where a run failed before it could.",
    )
    def compare_after_failure(context: dg.RunStatusSensorContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        left = left_uncompared(context.instance, context.dagster_run, suites)
        if not left:
            yield dg.SkipReason("the run has left nothing uncompared")
            return
        # The date tells notifications which runs belong together: what is wrong with a suite is told of once.
        tags = {name: value for name, value in context.dagster_run.tags.items() if name == EVAL_DATE}
        yield dg.RunRequest(run_key=context.dagster_run.run_id, asset_selection=left, tags=tags)

    return dg.Definitions(jobs=[job], sensors=[compare_after_failure])


def left_uncompared(instance: dg.DagsterInstance, run: dg.DagsterRun, suites: list[str]) -> list[dg.AssetKey]:
    """Comparisons that a failed run was to make and has not made, and no later run either.

    None of suites whose files or cases are what failed: they are told of there.
    """
    if run.job_name == COMPARE:
        return []
    failed = [
        entry.dagster_event
        for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
        if entry.dagster_event
    ]
    # Of a run that came to no step, or was killed, nothing says which suite is to blame.
    broken = {suite_of(event) for event in failed if asset_of(event) in (*INGESTING, *COMPARING)}
    keys = [dg.AssetKey([suite, name]) for suite in suites if suite not in broken for name in COMPARING]
    found = []
    for record in instance.get_asset_records(keys):
        entry = record.asset_entry
        made = entry.last_materialization_record
        if entry.last_run_id == run.run_id and (made is None or made.run_id != run.run_id):
            found.append(entry.asset_key)
    return found

"""Makes comparisons after an evaluation has failed, so that they do not remain failed for all model versions.

A run evaluates one model version and then compares all. If the evaluation fails, Dagster skips the comparison, and the
UI shows it as failed until it is made again, although the other model versions could be compared.
"""

from collections.abc import Iterator

import dagster as dg

from eval_pipeline.chain.evaluation import COMPARING, INGESTING
from eval_pipeline.core.home import find_home
from eval_pipeline.defs.assets.partitions import EVAL_DATE
from eval_pipeline.defs.automation.failures import asset_of, suite_of
from eval_pipeline.workspace.workspace import Workspace

COMPARE = "compare_suites"


@dg.definitions
def comparing() -> dg.Definitions:
    """Returns the job that compares the model versions of suites, and the sensor that requests it."""
    suites = list(Workspace(find_home()).suites)
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
        # The date tag groups the runs for notifications, so that problems of a suite are reported only once.
        tags = {name: value for name, value in context.dagster_run.tags.items() if name == EVAL_DATE}
        yield dg.RunRequest(run_key=context.dagster_run.run_id, asset_selection=left, tags=tags)

    return dg.Definitions(jobs=[job], sensors=[compare_after_failure])


def left_uncompared(instance: dg.DagsterInstance, run: dg.DagsterRun, suites: list[str]) -> list[dg.AssetKey]:
    """Returns the comparisons that a failed run should have made and that no later run has made.

    Suites whose files or cases failed are left out, as that failure is reported already.
    """
    if run.job_name == COMPARE:
        return []
    failed = [
        entry.dagster_event
        for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
        if entry.dagster_event
    ]
    # If a run was killed or reached no step, nothing tells which suite caused it.
    broken = {suite_of(event) for event in failed if asset_of(event) in (*INGESTING, *COMPARING)}
    keys = [dg.AssetKey([suite, name]) for suite in suites if suite not in broken for name in COMPARING]
    found = []
    for record in instance.get_asset_records(keys):
        entry = record.asset_entry
        made = entry.last_materialization_record
        if entry.last_run_id == run.run_id and (made is None or made.run_id != run.run_id):
            found.append(entry.asset_key)
    return found

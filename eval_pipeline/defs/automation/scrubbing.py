"""The nightly scrub: a separate job, so that neither it nor the evaluations wait for each other."""

import os

import dagster as dg

from eval_pipeline.core.home import find_home
from eval_pipeline.core.system.days import time_zone
from eval_pipeline.defs.automation.schedules import nightly_cron
from eval_pipeline.operations.upkeep.scrubbing import scrub
from eval_pipeline.workspace.workspace import Workspace

SCRUB = "scrub"


@dg.op(description="Reads record, journal and store whole, slowly, and fails where a file is damaged.")
def read_everything(context: dg.OpExecutionContext) -> None:
    """Fails with a sentence for each damaged file."""
    found = list(scrub(Workspace(find_home())))
    if found:
        raise dg.Failure("; ".join(found), allow_retries=False)
    context.log.info("every file of the record, the journal and the store is as it was written")


@dg.job(name=SCRUB, description="Looks for damaged files, all of them.", executor_def=dg.in_process_executor)
def scrubbing() -> None:
    """Reads everything."""
    read_everything()


nightly_scrub = dg.ScheduleDefinition(
    name="nightly_scrub",
    job=scrubbing,
    cron_schedule=nightly_cron(),
    execution_timezone=time_zone().key,
    default_status=dg.DefaultScheduleStatus.RUNNING
    if os.environ.get("EVAL_NIGHTLY") == "1"
    else dg.DefaultScheduleStatus.STOPPED,
    description="Reads the record, the journal and the store once a night, and tells what is damaged.",
)

"""The morning digest: one message and one page for each night of the schedule, once its last run has ended."""

import logging
import os
import time
from collections.abc import Sequence
from datetime import date

import dagster as dg
from dagster._core.storage.tags import PARTITION_NAME_TAG, SCHEDULE_NAME_TAG

from eval_pipeline.core.home import find_home
from eval_pipeline.defs.assets.partitions import EVAL_DATE
from eval_pipeline.defs.automation.notifications import NOTIFY_URL, UI_URL, post
from eval_pipeline.defs.automation.schedules import nightly
from eval_pipeline.reports.nights.message import night_message
from eval_pipeline.reports.nights.night import Launched, read_night
from eval_pipeline.reports.nights.page import write_night
from eval_pipeline.workspace.workspace import Workspace

QUIET_SECONDS = 60
"""After the last run has ended, so that runs of the same tick that are still being made belong to the night."""
_MOST_RUNS = 1000

logger = logging.getLogger(__name__)


@dg.sensor(
    name="morning_digest",
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Tells once of each night that is over: a page in the reports, and a message by "
    f"{NOTIFY_URL}, else in the log.",
)
def morning_digest(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Sends the digest of the newest night, unless that was done before; the cursor is its date."""
    records = _newest_night(context.instance)
    if not records:
        return dg.SkipReason("there has been no night yet")
    day = records[0].dagster_run.tags[EVAL_DATE]
    if day <= (context.cursor or ""):
        return dg.SkipReason(f"the night of {day} has been told of")
    if any(not record.dagster_run.is_finished for record in records):
        return dg.SkipReason(f"runs of the night of {day} are under way")
    if time.time() - max(record.end_time or 0.0 for record in records) < QUIET_SECONDS:
        return dg.SkipReason(f"the last run of the night of {day} has just ended")
    send_digest(Workspace(find_home()), date.fromisoformat(day), [_launched(record.dagster_run) for record in records])
    context.update_cursor(day)
    return dg.SkipReason(f"told of the night of {day}")


def send_digest(workspace: Workspace, day: date, launched: Sequence[Launched]) -> str:
    """Writes the page of a night and sends its message; gives the text.

    Raises:
        EvalError: the webhook did not take it.
    """
    ui = os.environ.get(UI_URL, "")
    night = read_night(workspace.record, day, launched)
    text = night_message(night, str(write_night(night, workspace.home.reports, ui)), ui)
    url = os.environ.get(NOTIFY_URL, "")
    if url:
        post(url, text)
    else:
        logger.info(text)
    return text


def _newest_night(instance: dg.DagsterInstance) -> list[dg.RunRecord]:
    """The runs that the schedule asked for on its newest date, re-executions in their place."""
    found = instance.get_run_records(dg.RunsFilter(tags={SCHEDULE_NAME_TAG: nightly.name}), limit=_MOST_RUNS)
    dated = [record for record in found if EVAL_DATE in record.dagster_run.tags]
    newest = max((record.dagster_run.tags[EVAL_DATE] for record in dated), default="")
    mine = [record for record in dated if record.dagster_run.tags[EVAL_DATE] == newest]
    last = {record.dagster_run.tags.get(PARTITION_NAME_TAG, ""): record for record in reversed(mine)}
    return [last[name] for name in sorted(last)]


def _launched(run: dg.DagsterRun) -> Launched:
    return Launched(run.tags.get(PARTITION_NAME_TAG, ""), run.run_id, run.status == dg.DagsterRunStatus.FAILURE)

"""The morning digest: one message and one page for each scheduled night, after its last run has ended."""

import logging
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from typing import Any

import dagster as dg

from eval_pipeline.core.covering.cost_limit import cost_limit
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.home import find_home
from eval_pipeline.defs.assets.partitions import EVAL_DATE, night_account
from eval_pipeline.defs.automation.notifications import NOTIFY_URL, UI_URL, post
from eval_pipeline.defs.automation.schedules import nightly
from eval_pipeline.defs.dagster_inside.running import PARTITION_NAME_TAG, SCHEDULE_NAME_TAG
from eval_pipeline.operations.runs.cost_limits import spent_text
from eval_pipeline.reports.nights.message import night_message
from eval_pipeline.reports.nights.night import Launched, read_night
from eval_pipeline.reports.nights.page import write_night
from eval_pipeline.store.published.compared import uncompared
from eval_pipeline.workspace.workspace import Workspace

QUIET_SECONDS = 60
"""Seconds to wait after the last run has ended, because further runs of the same tick may still be created."""
MOST_TRIES = 5
"""Number of attempts to send a message; a webhook that accepts messages but answers late must not get it forever."""
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
    """Sends the digest of the oldest unreported night; the cursor is the date of the last reported one.

    After a slash, the cursor contains the number of failed attempts for the next night, e.g. `2026-01-15/2`.
    """
    told, _, tried = (context.cursor or "").partition("/")
    nights = _nights(context.instance)
    if not nights:
        return dg.SkipReason("there has been no night yet")
    # Nights before the first digest are not reported.
    waiting = [day for day in sorted(nights) if day > told] if told else [max(nights)]
    over = [day for day in waiting if _is_over(nights[day])]
    if not waiting:
        return dg.SkipReason(f"the night of {max(nights)} has been told of")
    if not over:
        return dg.SkipReason(f"runs of the night of {waiting[0]} are under way, or the last has just ended")
    day = waiting[0]  # if a later night is over, this one is reported even if incomplete
    try:
        send_digest(Workspace(find_home()), date.fromisoformat(day), [_launched(run) for run in _last(nights[day])])
    except EvalError as error:
        tries = int(tried or 0) + 1
        context.update_cursor(f"{told}/{tries}" if tries < MOST_TRIES else day)
        logger.error("the digest of %s: %s%s", day, error, "" if tries < MOST_TRIES else "; not tried again")
        return dg.SkipReason(f"the digest of {day} was not taken: {error}")
    context.update_cursor(day)
    return dg.SkipReason(f"told of the night of {day}")


def send_digest(workspace: Workspace, day: date, launched: Sequence[Launched]) -> str:
    """Writes the page of a night, sends its message and returns the text.

    Raises:
        EvalError: the webhook did not accept it.
    """
    ui = os.environ.get(UI_URL, "")
    limit = cost_limit(night_account(day.isoformat()))
    told = spent_text(workspace.home.root, limit) if limit else ""
    night = read_night(workspace.record, day, launched, told, _uncompared(workspace))
    write_night(night, workspace.home.reports, ui)
    text = night_message(night, ui)
    url = os.environ.get(NOTIFY_URL, "")
    if url:
        post(url, text)
    else:
        logger.info(text)
    return text


def _uncompared(workspace: Workspace) -> list[dict[str, Any]]:
    """Returns the evaluations that are not compared; none where no store can tell."""
    with suppress(EvalError):
        return uncompared(workspace.home.store)
    return []


def _nights(instance: dg.DagsterInstance) -> dict[str, list[dg.RunRecord]]:
    """Returns the scheduled runs by date, newest first."""
    found = instance.get_run_records(dg.RunsFilter(tags={SCHEDULE_NAME_TAG: nightly.name}), limit=_MOST_RUNS)
    nights: dict[str, list[dg.RunRecord]] = {}
    for record in found:
        if day := record.dagster_run.tags.get(EVAL_DATE):
            nights.setdefault(day, []).append(record)
    return nights


def _is_over(records: Sequence[dg.RunRecord]) -> bool:
    last = _last(records)
    if any(not record.dagster_run.is_finished for record in last):
        return False
    return time.time() - max(record.end_time or 0.0 for record in last) >= QUIET_SECONDS


def _last(records: Sequence[dg.RunRecord]) -> list[dg.RunRecord]:
    """Returns the runs of a night, with re-executions in place of the runs they repeat."""
    last = {record.dagster_run.tags.get(PARTITION_NAME_TAG, ""): record for record in reversed(records)}
    return [last[name] for name in sorted(last)]


def _launched(record: dg.RunRecord) -> Launched:
    run = record.dagster_run
    return Launched(
        run.tags.get(PARTITION_NAME_TAG, ""),
        run.run_id,
        failed=run.status == dg.DagsterRunStatus.FAILURE,
        canceled=run.status == dg.DagsterRunStatus.CANCELED,
    )

"""The evaluation date of a step, fixed once for all steps of a run, and how fresh nights have to be."""

import os
from collections.abc import Mapping
from datetime import date, timedelta
from itertools import islice, pairwise

import dagster as dg

from eval_pipeline.core.model import Partition
from eval_pipeline.core.system.days import day_of, time_zone, today
from eval_pipeline.defs.assets.partitions import EVAL_DATE, date_tag, run_partition
from eval_pipeline.defs.automation.schedules import NIGHTLY, nightly_cron
from eval_pipeline.defs.dagster_inside.running import BACKFILL_ID_TAG, schedule_execution_time_iterator
from eval_pipeline.store import tables
from eval_pipeline.workspace.workspace import Workspace


def dated_partition(
    context: dg.AssetExecutionContext, suite: str, tags: Mapping[str, str], workspace: Workspace
) -> Partition:
    """Returns the partition of a step; if the run has no date, the first step fixes one for all later steps.

    Otherwise steps could get different dates after midnight, or when a later date is recorded meanwhile.

    Raises:
        UsageError: the run's tag is not a date.
    """
    asks = dg.AssetKey([suite, "generations"]) in context.job_def.asset_layer.selected_asset_keys
    # The date may have been fixed by another suite of the run that asks models; it applies only to such suites.
    if EVAL_DATE in tags and EVAL_DATE not in context.run.tags and not asks:
        tags = {name: value for name, value in tags.items() if name != EVAL_DATE}
    upstream = () if asks else (tables.GENERATIONS,)
    fixed = {EVAL_DATE, date_tag(suite, asks)} & tags.keys()
    launched = None if fixed else launch_day(context.instance, context.run)
    partition = run_partition(suite, context.partition_key, tags, workspace, upstream, launched)
    if not fixed:
        context.instance.add_run_tags(context.run.run_id, {date_tag(suite, asks): partition.eval_date.isoformat()})
    return partition


def launch_day(instance: dg.DagsterInstance, run: dg.DagsterRun) -> date:
    """Returns the day on which a run or its backfill was launched.

    The run may have waited in the queue past midnight.
    """
    if backfill_id := run.tags.get(BACKFILL_ID_TAG):
        backfill = instance.get_backfill(backfill_id)
        if backfill is not None:
            return day_of(backfill.backfill_timestamp)
    record = instance.get_run_record_by_id(run.run_id)
    return day_of(record.create_timestamp.timestamp()) if record is not None else today()


WARN_AFTER, LATE_AFTER = timedelta(hours=3), timedelta(hours=6)
"""Tolerance beyond the longest pause between two nights, because an evaluation takes time."""
_LOOKED_AT = 60
_SOME_TIME = 1_767_225_600.0


def freshness() -> dg.FreshnessPolicy | None:
    """Returns the freshness policy of published results; None if the nightly schedule is not enabled by default."""
    if os.environ.get(NIGHTLY) != "1":
        return None
    ticks = schedule_execution_time_iterator(_SOME_TIME, nightly_cron(), time_zone().key)
    pause = max(later - earlier for earlier, later in pairwise(islice(ticks, _LOOKED_AT)))
    return dg.FreshnessPolicy.time_window(fail_window=pause + LATE_AFTER, warn_window=pause + WARN_AFTER)

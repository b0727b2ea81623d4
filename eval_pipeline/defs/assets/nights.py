"""Freshness of suites: when a nightly evaluation is overdue."""

import os
from datetime import timedelta
from itertools import islice, pairwise

import dagster as dg

from eval_pipeline.core.system.days import time_zone
from eval_pipeline.defs.automation.schedules import NIGHTLY, nightly_cron
from eval_pipeline.defs.dagster_inside.running import schedule_execution_time_iterator

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

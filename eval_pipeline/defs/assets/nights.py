"""When a suite is late: where it is evaluated every night, and was not."""

import os
from datetime import timedelta
from itertools import islice, pairwise

import dagster as dg
from dagster._utils.schedules import schedule_execution_time_iterator

from eval_pipeline.core.days import time_zone
from eval_pipeline.defs.automation.schedules import CRON, NIGHTLY, TWO_O_CLOCK

WARN_AFTER, LATE_AFTER = timedelta(hours=3), timedelta(hours=6)
"""Beyond the longest pause between two nights; an evaluation takes its time."""
_LOOKED_AT = 60
_SOME_TIME = 1_767_225_600.0


def freshness() -> dg.FreshnessPolicy | None:
    """When what a suite has published is late; None where the nightly schedule is not on by default."""
    if os.environ.get(NIGHTLY) != "1":
        return None
    ticks = schedule_execution_time_iterator(_SOME_TIME, os.environ.get(CRON) or TWO_O_CLOCK, time_zone().key)
    pause = max(later - earlier for earlier, later in pairwise(islice(ticks, _LOOKED_AT)))
    return dg.FreshnessPolicy.time_window(fail_window=pause + LATE_AFTER, warn_window=pause + WARN_AFTER)

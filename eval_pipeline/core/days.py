"""What day it is, in the one time zone of a project: that of the schedule, the command line and the UI."""

import os
from datetime import date, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from eval_pipeline.core.errors import UsageError

TIME_ZONE = "EVAL_TIMEZONE"
"""Environment variable: the time zone, as `Asia/Tokyo`; the machine's where it is not set."""


def time_zone() -> ZoneInfo:
    """The project's time zone; UTC where the machine does not say which is its own.

    Raises:
        UsageError: the environment names none.
    """
    if not (name := os.environ.get(TIME_ZONE)):
        return ZoneInfo(_machines())
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # also for folders, as `Asia` is
        raise UsageError(f"{TIME_ZONE} is '{name}', which is no time zone; expected one such as Asia/Tokyo") from error


def today() -> date:
    """The present day."""
    return datetime.now(time_zone()).date()


def day_of(seconds: float) -> date:
    """The day of a moment, in seconds since 1970."""
    return datetime.fromtimestamp(seconds, time_zone()).date()


def _machines() -> str:
    from tzlocal import get_localzone_name

    try:
        name = get_localzone_name() or "UTC"
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a machine that contradicts itself, or names its own rules
        return "UTC"
    return name

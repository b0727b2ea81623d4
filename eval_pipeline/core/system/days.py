"""The current day in the project's one time zone, and the time since the host started, which nobody sets."""

import os
import time
from datetime import date, datetime
from typing import TYPE_CHECKING

from eval_pipeline.core.errors import UsageError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo


TIME_ZONE = "EVAL_TIMEZONE"
"""Environment variable: the time zone, e.g. `Asia/Tokyo`; defaults to the machine's."""


def time_zone() -> "ZoneInfo":
    """Returns the project's time zone; UTC if the machine has none configured.

    Raises:
        UsageError: the environment variable names no known time zone.
    """
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    if not (name := os.environ.get(TIME_ZONE)):
        return ZoneInfo(_machines())
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # OSError: a folder of zones, such as `Asia`
        raise UsageError(
            f"{TIME_ZONE} is '{name}', which is not a time zone; expected one such as Asia/Tokyo"
        ) from error


def today() -> date:
    """Returns the current day."""
    return datetime.now(time_zone()).date()


def day_of(seconds: float) -> date:
    """Returns the day of a Unix timestamp in seconds."""
    return datetime.fromtimestamp(seconds, time_zone()).date()


def _machines() -> str:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    from tzlocal import get_localzone_name

    try:
        name = get_localzone_name() or "UTC"
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # contradictory or custom settings of the machine
        return "UTC"
    return name


def since_boot() -> float:
    """Returns seconds since boot, those in which the machine was suspended among them (on Linux)."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()

"""A clock that goes on while the machine sleeps: what others wait for does, too."""

import time


def since_boot() -> float:
    """Returns seconds since boot, those in which the machine was suspended among them (on Linux)."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()

"""How many processors this process may use: fewer than the machine has where a cgroup or its affinity limits it."""

import math
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def processors(groups: Path = _GROUPS, own: Path = _OWN) -> int:
    """Returns the number of processors this process may keep busy, at least 1.

    That is the number of processors it may run on, or the CPU quota of its cgroup, rounded up, where that is less: a
    container with half a machine must not start as many children as the whole machine has processors.

    Args:
        groups: where the cgroups are mounted.
        own: the file that names the cgroups of this process.
    """
    if sys.platform == "linux":
        mine = len(os.sched_getaffinity(0))
    else:  # other systems limit neither
        mine = os.cpu_count() or 1
    return max(1, min([mine, *(math.ceil(quota) for quota in _quotas(groups, own))]))


def _quotas(groups: Path, own: Path) -> Iterator[float]:
    """Yields the quotas, in processors, of this process's cgroup and of those around it, versions 1 and 2."""
    for folder, unified in _folders(groups, own):
        with suppress(OSError, ValueError, ZeroDivisionError):  # no limit is set, or it is not ours to read
            if unified:
                quota, period = (folder / "cpu.max").read_text().split()
            else:
                quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
            if (found := float(quota) / float(period)) > 0:  # "max" is no number; version 1 has -1 for no limit
                yield found


def _folders(groups: Path, own: Path) -> Iterator[tuple[Path, bool]]:
    """Yields the folders of the CPU limits, and whether they are of version 2.

    Inside a container the file may name a path on the host, of which only the mounted root is visible.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            root, unified = groups, True
        elif "cpu" in controllers.split(","):
            root, unified = groups / "cpu", False
        else:
            continue
        inside = PurePosixPath(path.lstrip("/"))
        for part in (inside, *inside.parents):
            yield root / part, unified

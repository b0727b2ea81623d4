"""What a process takes: CPU seconds, memory, and bytes written."""

import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """What a process has taken.

    Attributes:
        cpu_s: CPU seconds, with those of its children that have ended.
        peak_mib: its largest resident set.
        code: with which it ended.
        written_mib: what it has passed to `write`.
    """

    cpu_s: float
    peak_mib: float
    code: int
    written_mib: float = 0.0


def measured(command: Sequence[str]) -> Cost:
    """Runs a command to its end."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak, written, pid = 0.0, 0.0, 0
    while not pid:
        # Not `ru_maxrss`, in which a child has what its parent had when it was made.
        peak, written = max(peak, peak_mib(process.pid)), max(written, written_mib(process.pid))
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        time.sleep(0.02)
    return Cost(usage.ru_utime + usage.ru_stime, peak, os.waitstatus_to_exitcode(status), written)


def peak_mib(pid: int) -> float:
    """Largest resident set of a process; 0 if it has ended."""
    return _of(f"/proc/{pid}/status", "VmHWM:") / 1024


def written_mib(pid: int) -> float:
    """What a process has passed to `write`; 0 if it has ended."""
    return _of(f"/proc/{pid}/io", "wchar:") / 2**20


def _of(path: str, name: str) -> int:
    with suppress(OSError):
        for line in Path(path).read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1])
    return 0

"""Time limits in processor time: what a query finds out does not depend on what else a machine is doing."""

import time
from dataclasses import dataclass

from eval_pipeline.core.shown import number

PATIENCE = 30.0
"""By the clock, a limit may take so many times as long: on a busy machine, a process gets a part of a processor."""
_LONGEST_S = 600.0
"""It may take at most so much longer: what waits for something that does not come must end, too."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment that comes when a process has used so much processor time, or when too much time has passed.

    Attributes:
        pid: the process; 0 for this one.
        seconds: how much of it, from the beginning.
        cpu_s: until which it may run, in seconds of its own processor time.
        earliest: the first moment by the clock, as `time.monotonic`, at which one thread can have used that much: the
            clock is cheaper to look at than processor time.
        latest: the last moment by the clock.
    """

    pid: int
    seconds: float
    cpu_s: float
    earliest: float
    latest: float

    @classmethod
    def after(cls, seconds: float, pid: int = 0, patience: float = PATIENCE) -> "Deadline":
        """Returns the deadline for what begins now.

        Args:
            seconds: of processor time.
            pid: the process that works; 0 for this one.
            patience: how many times as long it may take by the clock; 1 where others do the work, as a server does.
        """
        now = time.monotonic()
        longer = min(seconds * (patience - 1), _LONGEST_S)
        return cls(pid, seconds, cpu_of(pid) + seconds, now + seconds, now + seconds + longer)

    def told(self) -> str:
        """Returns which of the two came, for what it ends; before the process is."""
        began = self.earliest - self.seconds
        if self.latest > self.earliest and cpu_of(self.pid) < self.cpu_s:
            took = number(self.latest - began)
            return f"after {took} s by the clock, with less than {self.seconds:g} s of a processor"
        return f"after {self.seconds:g} s"

    def left(self) -> float:
        """Returns the seconds for which it certainly does not come yet; 0 or less if it has come."""
        return min(self.cpu_s - cpu_of(self.pid), self.latest - time.monotonic())


def cpu_of(pid: int) -> float:
    """Returns the processor time of a process so far, in seconds; of one that cannot be read, the clock's."""
    if pid == 0:
        return time.process_time()
    try:
        # The number of the clock is that of `clock_getcpuclockid`, which Python does not have for processes.
        return time.clock_gettime((~pid << 3) | 2)
    except (OSError, AttributeError):  # it has ended, or the system is another one than Linux
        return time.monotonic()

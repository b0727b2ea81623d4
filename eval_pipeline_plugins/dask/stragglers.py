"""Decides which task to start next: those that wait, then second copies of those that take unusually long."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

STRAGGLES = 3.0
"""A task that runs this many times as long as the median is started a second time elsewhere."""
_KNOWN = 3
"""So many tasks have to be done before the median means something."""


@dataclass
class TaskLedger:
    """The tasks of one `map`, by their position; the first copy that is done wins.

    Times are seconds on any one clock.

    Attributes:
        count: number of tasks.
        took: how long each one took that is done.
        since: when the first copy of each was started.
        doubled: those that were started a second time.
    """

    count: int
    took: list[float] = field(default_factory=list)
    done: set[int] = field(default_factory=set)
    since: dict[int, float] = field(default_factory=dict)
    doubled: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._waiting = deque(range(self.count))

    def next(self, now: float) -> int | None:
        """Returns the task to start now; None if there is none. Only called when a place is free."""
        if self._waiting:
            task = self._waiting.popleft()
            self.since[task] = now
            return task
        late = [task for task in self._late(now) if task not in self.doubled]
        if not late:
            return None
        task = min(late, key=lambda one: self.since[one])
        self.doubled.add(task)
        return task

    def _late(self, now: float) -> Sequence[int]:
        if len(self.took) < _KNOWN:
            return ()
        bound = STRAGGLES * median(self.took)
        return [task for task, since in self.since.items() if task not in self.done and now - since > bound]

    def ended(self, task: int, now: float) -> bool:
        """Notes that a copy of a task is done; returns whether it is the first."""
        if task in self.done:
            return False
        self.done.add(task)
        self.took.append(now - self.since[task])
        return True

    @property
    def finished(self) -> bool:
        """Whether all tasks are done."""
        return len(self.done) == self.count

"""The watch of a command or Dagster run: it writes how far it is, and notices the wish that it ends.

The process that asks is the only one that knows how far it is. It writes that to one small file below the home's
`running/`, once a second at most, and looks there for the wish of somebody who watches: a file, so that a wish outlives
the server that took it. Nothing of a run depends on these files; what cannot be written is not shown.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, TypeVar
from uuid import uuid4

from eval_pipeline.core.covering.cost_limit import CostLimit
from eval_pipeline.core.errors import EndedEarlyError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.core.system import interrupts
from eval_pipeline.core.system.processes import worldwide_mark
from eval_pipeline.store.durable import temporary_path
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.noting.noted import told_of
from eval_pipeline.workspace.watching.status import FAILED, STOPPED, Speed, Status, line

TELL_S = 10.0
"""Seconds between two lines."""
_FIRST_S = 2.0
"""Seconds of asking until the first line, so that nobody wonders whether it asks."""
_WRITE_S = 1.0
_MINUTE_S = 60.0
_SPACING_S = 5.0
"""Seconds between two points of the pace."""
_WISHED = "canceled in the workbench; what was done is kept, and Resume there or the next run goes on from there"
T = TypeVar("T")
Tell = Callable[[str], object]
Look = Callable[[Status], None]
"""Completes a status by what is known at the moment."""


class Watch:
    """Writes the status of a run, and heeds the wish that it ends. One thread calls its methods.

    While models are asked, that one calls `beat` once a second; otherwise a thread of its own does, as a stage may be
    at one thing for minutes. The run ends between two steps or two items of work.

    Attributes:
        status: what is known so far.
        wished: whether somebody wishes that the run ends.
    """

    def __init__(self, home: Home, status: Status, tell: Tell | None = None) -> None:
        """Writes nothing before the first step; `tell` gets the line on the run every ten seconds."""
        self.status, self.wished = status, False
        self._home, self._wish = home, wish_path(home, status.id)
        self._tell = tell
        self._look: Look = _nothing
        self._written, self._told = 0.0, time.monotonic()
        self._places: dict[tuple[str, ...], int] = {}
        self._points: deque[tuple[float, int, int]] = deque(maxlen=int(_MINUTE_S / _SPACING_S) + 1)
        self._lock, self._asks, self._ended = Lock(), False, Event()
        self._beating = Thread(target=self._beats, name="watch", daemon=True)

    def step(self, place: Partition, run_id: str, name: str) -> None:
        """Notes what is done next."""
        status, told = self.status, [place.suite, place.model_version, place.eval_date.isoformat()]
        with self._lock:
            if told != status.place:
                status.number = self._places.setdefault(tuple(told), len(self._places) + 1)
                _clear(status)
            status.place, status.run_id = told, run_id
            self._next(name)

    def together(self, name: str) -> None:
        """Notes what is done next for all evaluations together."""
        with self._lock:
            self.status.place, self.status.run_id = [], ""
            _clear(self.status)
            self._next(name)

    def working(self, what: str, items: Iterable[T], total: int) -> Iterator[T]:
        """Yields the items and counts them; `total` is 0 if unknown."""
        status = self.status
        status.work, status.work_total, status.work_done = what, total, 0
        try:
            for item in items:
                if self.wished:
                    interrupts.interrupt()
                yield item
                status.work_done += 1
        finally:
            status.work = ""

    @contextmanager
    def asking(self, name: str, total: int, look: Look, **told: Any) -> Iterator[None]:
        """Within the block, models are asked.

        Args:
            name: `asking`, `recovery` or `judging`.
            total: how many turns or answers.
            look: completes the status by what is known; called about once a second.
            told: further fields of the status that stay as they are.
        """
        status = self.status
        with self._lock:
            self._asks = True
        _clear(status)
        status.step, status.step_began, status.total = name, time.time(), total
        for field, value in told.items():
            setattr(status, field, value)
        self._look, self._told = look, time.monotonic() - TELL_S + _FIRST_S
        self._points.clear()
        look(status)
        self._write()
        try:
            yield
        finally:
            look(status)
            status.waiting = []
            self._look = _nothing
            self._write()
            self._asks = False

    def beat(self) -> bool:
        """Writes what is known, tells it if it is time, and returns whether somebody wishes that the run ends."""
        now = time.monotonic()
        self._look(self.status)
        self._paced(now)
        if now - self._written >= _WRITE_S / 2:
            self._write()
        if self._tell is not None and now - self._told >= TELL_S:
            self._told = now
            self._tell(line(self.status))
        self.wished = self._wish.exists()
        return self.wished

    def end(self, state: str = "") -> None:
        """Leaves how it ended; if all went well, nothing."""
        self._ended.set()
        if self._beating.is_alive():
            self._beating.join()
        if state and self._written:
            self.status.state = state
            self._write()
            with suppress(OSError):
                self._wish.unlink(missing_ok=True)
        elif not state:
            forget(self._home, self.status.id)

    def _next(self, name: str) -> None:
        self.status.step, self.status.step_began = name, time.time()
        self._write()
        if not self._beating.is_alive():
            self._beating.start()
        self.wished = self._wish.exists()
        if self.wished:
            interrupts.interrupt()

    def _beats(self) -> None:
        with suppress(OSError):  # where the lines go to is gone, which the run itself finds out
            while not self._ended.wait(interrupts.BEAT_S):
                with self._lock:
                    if not self._asks:
                        self.beat()

    def _paced(self, now: float) -> None:
        status, points = self.status, self._points
        here = (now, status.calls, status.done - status.journal)
        if not points or now - points[-1][0] >= _SPACING_S:
            points.append(here)
        first = points[0]
        status.pace = Speed(now - first[0], here[1] - first[1], here[2] - first[2])

    def _write(self) -> None:
        self._written, self.status.at = time.monotonic(), time.time()
        with suppress(OSError):
            write_status(self._home, self.status)


def asked_for(
    partitions: Sequence[Partition],
    scope: Scope,
    epoch: str,
    *,
    report: bool = True,
    canary: bool = True,
    cost_limit: CostLimit | None = None,
    until: tuple[str, int] | None = None,
) -> dict[str, Any]:
    """Returns what a run was asked for, as in its status; `until` is the label of a rule and the seed of its draw."""
    limit = None if cost_limit is None else [cost_limit.account, cost_limit.usd]
    told = {"partitions": [told_of(place) for place in partitions], "scope": scope.label(), "epoch": epoch}
    return {**told, "report": report, "canary": canary, "limit": limit, "until": until}


@contextmanager
def watching(
    home: Home,
    command: str,
    request: Mapping[str, Any],
    *,
    evaluations: int = 0,
    tell: Tell | None = None,
    known_as: str = "",
) -> Iterator[Watch]:
    """Yields the watch of a command or a run, and leaves how that ended: stopped, failed, or well.

    Args:
        home: the home.
        command: `run`, or `dagster`.
        request: what was asked for, so that `resume` can ask for the same.
        evaluations: how many evaluations it makes; 0 if that is not known.
        tell: gets the line on the run every ten seconds.
        known_as: the id of a Dagster run, or of a command that goes on; by default a new one.

    Raises:
        EndedEarlyError: somebody wished in the workbench that a command ends; Dagster tells it in its own way.
    """
    status = Status(known_as or str(uuid4()), command, worldwide_mark(), time.time(), request=dict(request))
    status.evaluations = evaluations
    watch = Watch(home, status, tell)
    with suppress(OSError):
        wish_path(home, status.id).unlink(missing_ok=True)
    state = STOPPED
    try:
        yield watch
        state = FAILED if status.problems else ""
    except KeyboardInterrupt:
        if watch.wished and command == "run":
            raise EndedEarlyError(_WISHED) from None
        raise
    except Exception as error:
        state, status.problems = FAILED, [*status.problems, str(error) or type(error).__name__]
        raise
    finally:
        watch.end(state)


def status_path(home: Home, known_as: str) -> Path:
    """Returns the file with the status of a run."""
    return home.running / f"{known_as}.json"


def wish_path(home: Home, known_as: str) -> Path:
    """Returns the file whose existence is the wish that a run ends."""
    return home.running / f"{known_as}.stop"


def output_path(home: Home, known_as: str) -> Path:
    """Returns the file with what a resumed run has printed."""
    return home.running / f"{known_as}.log"


def write_status(home: Home, status: Status) -> None:
    """Writes the status of a run: whole or not at all, but not durably, as after a power failure nothing of it matters.

    Raises:
        OSError: it cannot be written.
    """
    path = status_path(home, status.id)
    temporary, text = temporary_path(path), status.text()
    try:
        temporary.write_text(text, "utf-8", "backslashreplace")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, "utf-8", "backslashreplace")
    temporary.replace(path)


def forget(home: Home, known_as: str) -> None:
    """Removes what is known of a run that has ended."""
    for path_of in (status_path, wish_path, output_path):
        with suppress(OSError):
            path_of(home, known_as).unlink(missing_ok=True)


def _clear(status: Status) -> None:
    """Forgets what was known of another step that asked."""
    fresh = Status(status.id, status.command, status.process, status.began)
    for name in _OF_A_STEP:
        setattr(status, name, getattr(fresh, name))


_OF_A_STEP = (
    *("total", "samples", "done", "journal", "refused", "unanswered", "readable", "scored", "right", "low", "high"),
    *("work", "why_unscored", "errors", "retried", "calls", "pace", "usd", "tokens", "free", "limit_usd", "limit_kind"),
    "waiting",
)


def _nothing(_: Status) -> None:
    return

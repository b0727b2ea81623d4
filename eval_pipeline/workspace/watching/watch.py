"""The watch of a command or Dagster run: it writes how far it is, and notices the wish that it ends.

The process that asks is the only one that knows how far it is. It writes that to one small file below the home's
`running/`, every 1.5 s, and looks there for the wish of somebody who watches: a file, so that a wish outlives
the server that took it. Nothing of a run depends on these files; what cannot be written is not shown.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Thread, current_thread, main_thread
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
from eval_pipeline.workspace.watching.status import ASKING, FAILED, OF_FIRST, STOPPED, Speed, Status, end_line, line

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
    at one thing for minutes, and interrupts it as Ctrl-C would where somebody wishes that the run ends. Where that
    cannot be, as in a thread of another program, it ends between two steps or two items of work.

    Attributes:
        status: what is known so far.
        wished: whether somebody wishes that the run ends.
        tell: gets the line on the run every ten seconds, and how it ended.
    """

    def __init__(self, home: Home, status: Status, tell: Tell | None = None) -> None:
        """Writes nothing before the first step, and forgets a wish that an earlier run with this id should end."""
        self.status, self.wished, self.tell = status, False, tell
        self._home, self._wish = home, wish_path(home, status.id)
        with suppress(OSError):
            self._wish.unlink(missing_ok=True)
        self._look: Look = _nothing
        self._written, self._told = 0.0, time.monotonic()
        self._file, self._size = -1, 0
        self._places: dict[tuple[str, ...], int] = {}
        self._kept: dict[tuple[str, ...], dict[str, Any]] = {}
        self._points: deque[tuple[float, int, int]] = deque(maxlen=int(_MINUTE_S / _SPACING_S) + 1)
        self._lock, self._asks, self._asked, self._ended = Lock(), False, False, Event()
        self._heeded, self._at_work = False, current_thread() is main_thread()
        self._in_main = self._at_work
        self._beating = Thread(target=self._beats, name="watch", daemon=True)

    def step(self, place: Partition, run_id: str, name: str) -> None:
        """Notes what is done next."""
        told = [place.suite, place.model_version, place.eval_date.isoformat()]
        with self._lock:
            self._turn_to(told)
            self.status.number = self._places.setdefault(tuple(told), len(self._places) + 1)
            self.status.run_id = run_id
            self._next(name)

    def together(self, name: str, suite: str = "") -> None:
        """Notes what is done next for all evaluations together, or for those of a suite."""
        with self._lock:
            self._turn_to([suite] if suite else [])
            self.status.number, self.status.run_id = 0, ""
            self._next(name)

    def rest(self) -> None:
        """To be called after a step, where somebody else begins the next: until then nothing is interrupted."""
        with self._lock:
            self._at_work = False

    def working(self, what: str, items: Iterable[T], total: int, unit: str = "turns") -> Iterator[T]:
        """Yields the items and counts them; `total` is 0 if unknown."""
        status = self.status
        status.work, status.work_total, status.work_done, status.work_unit = what, total, 0, unit
        try:
            for item in items:
                if self.wished and self._heeds():
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
            self._asks = self._asked = True
        before = [usd for usd in (status.usd_before, status.usd) if usd is not None]
        kept = {"first": status.first, "usd_before": sum(before) if before else None}
        kept["tokens_before"] = status.tokens_before + status.tokens
        for field, value in {**_fresh(), **kept, "total": total, **told}.items():
            setattr(status, field, value)
        status.step, status.step_began = name, time.time()
        self._look, self._told = look, time.monotonic() - TELL_S + _FIRST_S
        self._points.clear()
        look(status)
        self._write()
        try:
            yield
        finally:
            look(status)
            status.waiting = []
            if name == ASKING:
                status.first = {field: getattr(status, field) for field in OF_FIRST}
            self._look = _nothing
            self._write()
            self._asks = False

    def beat(self) -> bool:
        """Writes what is known, tells it if it is time, and returns whether the run is to end now: true once."""
        now = time.monotonic()
        self._look(self.status)
        status, points = self.status, self._points
        here = (now, status.calls, status.done - status.journal)
        if not points or now - points[-1][0] >= _SPACING_S:
            points.append(here)
        first = points[0]
        status.pace = Speed(now - first[0], here[1] - first[1], here[2] - first[2])
        if now - self._written >= _WRITE_S / 2:
            self._write()
        if self.tell is not None and now - self._told >= TELL_S:
            self._told = now
            self.tell(line(self.status))
        self.wished = self._wish.exists()
        return self.wished and self._heeds()

    def end(self, state: str = "") -> None:
        """Leaves how it ended; if all went well, nothing."""
        self._ended.set()
        if self._beating.is_alive():
            self._beating.join()
        if not state:
            self._turn_to([*next(iter(self._places))] if len(self._places) == 1 else [])
            self.status.number = 0
        self.status.pace = Speed()
        if self.tell is not None and self._asked:
            with suppress(OSError):
                self.tell(end_line(self.status, state))
        if state and self._written:
            self.status.state = state
            self._write()
            with suppress(OSError):
                self._wish.unlink(missing_ok=True)
        elif not state:
            forget(self._home, self.status.id)
        if self._file >= 0:
            os.close(self._file)

    def _turn_to(self, place: list[str]) -> None:
        status = self.status
        if place != status.place:
            self._kept[tuple(status.place)] = {name: getattr(status, name) for name in _fresh()}
            for name, value in self._kept.get(tuple(place), _fresh()).items():
                setattr(status, name, value)
            status.place = place

    def _next(self, name: str) -> None:
        self.status.step, self.status.step_began = name, time.time()
        self._at_work = self._in_main
        self._write()
        if not self._beating.is_alive():
            self._beating.start()
        self.wished = self._wish.exists()
        if self.wished and self._heeds():
            interrupts.interrupt()

    def _heeds(self) -> bool:
        """Whether the caller is the one who is to end the run: nobody was told so before."""
        heeded, self._heeded = self._heeded, True
        return not heeded

    def _beats(self) -> None:
        with suppress(OSError):  # where the lines go to is gone, which the run itself finds out
            while not self._ended.wait(interrupts.BEAT_S):
                with self._lock:
                    if not self._asks and self.beat() and not (self._at_work and interrupts.interrupt_main()):
                        self._heeded = False

    def _write(self) -> None:
        """Writes over the file in place, at a tenth of the cost of a new one, and in one call, to be read whole."""
        self._written, self.status.at = time.monotonic(), time.time()
        with suppress(OSError):
            if self._file < 0:
                write_status(self._home, self.status)
                self._file = os.open(status_path(self._home, self.status.id), os.O_RDWR)
                self._size = os.fstat(self._file).st_size
                return
            text = self.status.text().encode(errors="backslashreplace").ljust(self._size)
            self._size = os.pwrite(self._file, text, 0)


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


def watch_of(home: Home, command: str, known_as: str = "", request: Mapping[str, Any] | None = None) -> Watch:
    """Returns the watch of a command or a run, which somebody must end.

    Args:
        home: the home.
        command: `run`, or `dagster`.
        known_as: the id of a Dagster run, or of a command that goes on; by default a new one.
        request: what was asked for, so that `resume` can ask for the same.
    """
    return Watch(
        home, Status(known_as or str(uuid4()), command, worldwide_mark(), time.time(), request=dict(request or {}))
    )


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
    """Yields the watch of a command, and leaves how that ended: stopped, failed, or well.

    Args:
        home: the home.
        command: `run`.
        request: what was asked for, so that `resume` can ask for the same.
        evaluations: how many evaluations it makes; 0 if that is not known.
        tell: gets the line on the run every ten seconds.
        known_as: the id of a command that goes on; by default a new one.

    Raises:
        EndedEarlyError: somebody wished in the workbench that a command ends.
    """
    watch = watch_of(home, command, known_as, request)
    watch.status.evaluations, watch.tell = evaluations, tell
    state = STOPPED
    try:
        yield watch
        state = FAILED if watch.status.problems else ""
    except KeyboardInterrupt:
        if watch.wished:
            raise EndedEarlyError(_WISHED) from None
        raise
    except Exception as error:
        state, watch.status.problems = FAILED, [*watch.status.problems, str(error) or type(error).__name__]
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


def _fresh() -> dict[str, Any]:
    """Returns what is known of an evaluation about which nothing is known yet."""
    fresh = Status("", "", "", 0.0)
    return {name: getattr(fresh, name) for name in _OF_AN_EVALUATION}


_OF_AN_EVALUATION = (
    *OF_FIRST,
    *("first", "samples", "unanswered", "calls", "pace", "usd", "tokens", "usd_before", "tokens_before", "free"),
    *("limit_usd", "limit_kind", "waiting", "work"),
)


def _nothing(_: Status) -> None:
    return

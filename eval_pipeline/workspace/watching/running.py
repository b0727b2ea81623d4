"""What runs now, as everybody sees it who can read the home; and the wish that a run ends."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.core.system.processes import host, is_alive
from eval_pipeline.store.durable import fsync_path, make_folders
from eval_pipeline.workspace.watching.status import (
    FAILED,
    RUNNING,
    STOPPED,
    Status,
    left_text,
    progress_text,
    status_of,
)
from eval_pipeline.workspace.watching.watch import forget, wish_path

GONE, ELSEWHERE = "gone", "elsewhere"
"""States in addition to those of the file: the process was killed; another host has not written for a while."""
_SILENT_S = 60.0
"""Seconds after which a process of another host may be gone: who asks writes every second, other steps take longer."""
_KEPT_S = 14 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class SeenRun:
    """A run as it is seen from here.

    Attributes:
        status: what its process wrote last.
        state: `running`, `stopped`, `failed`, `gone` or `elsewhere`.
        stopping: whether somebody has wished that it ends.
    """

    status: Status
    state: str
    stopping: bool = False

    @property
    def runs(self) -> bool:
        """Whether it goes on, as far as can be told."""
        return self.state in {RUNNING, ELSEWHERE}

    @property
    def progress(self) -> str:
        """How far it is, and how long the rest takes; of one that ended early, how it ended."""
        told = progress_text(self.status)
        if self.runs:
            left = "stopping" if self.stopping else left_text(self.status)
            return f"{told}, {left}" if left else told
        if self.state == FAILED:  # where it was last need not be where it failed
            return "failed"
        ended = "canceled" if self.state == STOPPED else "its process is gone,"
        if not self.status.asks:
            return f"{ended} {'before it asked' if self.status.step in {'', 'generations'} else told}"
        return f"{ended} at {told}"

    @property
    def host(self) -> str:
        """Name of the host that it runs on; empty for this one."""
        where = self.status.process.rsplit(" ", 2)[0]
        return "" if where == host() else where.rpartition("@")[0] or where

    @property
    def silent_s(self) -> float:
        """Seconds since its process wrote last."""
        return max(0.0, time.time() - self.status.at)


def seen(home: Home) -> list[SeenRun]:
    """Returns the runs of a home that go on, and those that ended early, the newest first."""
    found = []
    for path in _files(home):
        with suppress(OSError, ValueError):
            try:
                status = status_of(path.read_text("utf-8"))
            except ValueError:  # it may just have been written over
                status = status_of(path.read_text("utf-8"))
            if status.id == path.stem:
                found.append(SeenRun(status, _state(status), wish_path(home, status.id).exists()))
    return sorted(found, key=lambda one: (not one.runs, -one.status.began))


def seen_one(home: Home, known_as: str) -> SeenRun:
    """Returns one run. Raises UsageError if nothing is known of it any more."""
    found = next((one for one in seen(home) if one.status.id == known_as), None)
    if found is None:
        raise UsageError("this run has ended, and all that it was to do is done")
    return found


def wish_end(home: Home, known_as: str) -> None:
    """Wishes that a run ends: it asks nothing more, waits for the calls on their way, and keeps what it has.

    Raises:
        UsageError: it does not run, or the home cannot be written from here.
    """
    found = seen_one(home, known_as)
    if not found.runs:
        raise UsageError("this run has ended already")
    if why := why_not_writable(home):
        raise UsageError(why)
    path = wish_path(home, known_as)
    try:
        make_folders(path.parent)
        path.touch()
        fsync_path(path.parent)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; end the run where it was started") from error


def why_not_writable(home: Home) -> str:
    """Returns why nobody can stop or resume runs of this home from here, as a sentence; empty if they can."""
    folder = home.running if home.running.exists() else home.root
    if os.access(folder, os.W_OK):
        return ""
    return f"{home.root} can only be read from here: a run is stopped where it was started, by Ctrl-C"


def forget_superseded(home: Home, status: Status) -> None:
    """Removes what is known of runs that ended early, if a new one makes all that they were to make; and old files."""
    mine, scope = _places(status), status.request.get("scope")
    for one in seen(home):
        same = _places(one.status) <= mine and one.status.request.get("scope") == scope
        if one.status.id != status.id and not one.runs and (same or one.silent_s > _KEPT_S):
            forget(home, one.status.id)


def _places(status: Status) -> set[tuple[str, ...]]:
    return {tuple(place) for place in status.request.get("partitions", ())}


def _state(status: Status) -> str:
    if status.state in {STOPPED, FAILED}:
        return status.state
    where, pid, started = status.process.rsplit(" ", 2)
    if where == host():
        return RUNNING if is_alive(int(pid), started) else GONE
    return RUNNING if time.time() - status.at < _SILENT_S else ELSEWHERE


def _files(home: Home) -> Iterator[Path]:
    with suppress(FileNotFoundError, PermissionError, NotADirectoryError):
        yield from (path for path in home.running.iterdir() if path.suffix == ".json" and not path.name.startswith("."))

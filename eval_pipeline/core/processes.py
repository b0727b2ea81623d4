"""Identifies processes reliably, although the system reuses process ids."""

import os
from contextlib import suppress
from pathlib import Path

import psutil

_STATE, _STARTED = 0, 19
"""Indices of state and start time among the fields after the name in `/proc/<pid>/stat`, see proc(5)."""


def started(pid: int) -> str:
    """Returns a process's start time in a form independent of clock changes; empty if there is no such process."""
    fields = _fields(pid)
    if fields is not None:
        return fields[_STARTED]
    with suppress(psutil.Error):
        return f"{psutil.Process(pid).create_time():.2f}"
    return ""


def mark() -> str:
    """Returns an identifier of this process: its id and start time."""
    return f"{os.getpid()} {started(os.getpid())}"


def is_alive(pid: int, since: str) -> bool:
    """Whether the process identified by `mark` still runs, and its id was not reused by another one."""
    fields = _fields(pid)
    if fields is not None and "." not in since:
        # A killed process stays in the process table, as a zombie, until its parent reaps it, perhaps forever.
        return fields[_STATE] not in {"Z", "X"} and fields[_STARTED] == since
    try:  # systems without /proc, or a mark written by version 0.1.0
        process = psutil.Process(pid)
        ended = process.status() in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
        return not ended and abs(process.create_time() - float(since)) < 1
    except (psutil.NoSuchProcess, ValueError):
        return False


def _fields(pid: int) -> list[str] | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, UnicodeDecodeError):
        return None

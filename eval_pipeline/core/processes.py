"""Telling processes apart, although their numbers are given again."""

import os
from contextlib import suppress
from pathlib import Path

import psutil

_STATE, _STARTED = 0, 19
"""Fields of `/proc/<pid>/stat` behind the name: proc(5) counts them from 3."""


def started(pid: int) -> str:
    """When a process began, in a form that no step of the clock changes; empty where there is no such process."""
    fields = _fields(pid)
    if fields is not None:
        return fields[_STARTED]
    with suppress(psutil.Error):
        return f"{psutil.Process(pid).create_time():.2f}"
    return ""


def mark() -> str:
    """This process: number and beginning."""
    return f"{os.getpid()} {started(os.getpid())}"


def is_alive(pid: int, since: str) -> bool:
    """Whether the process that `mark` named is there, and neither ended nor another one that got its number."""
    fields = _fields(pid)
    if fields is not None and "." not in since:
        # One that was killed stays in the list of processes until its parent has looked at it, perhaps for ever.
        return fields[_STATE] not in {"Z", "X"} and fields[_STARTED] == since
    try:  # without /proc, or a mark that version 0.1.0 made
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

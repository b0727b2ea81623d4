"""Identifies processes reliably, although the system reuses process ids."""

import hashlib
import os
import select
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

UNKNOWN = "-"
"""The machine of processes to which the system does not tell it."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_LOOK_S = 1.0
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


def machine() -> str:
    """Returns a short hash of this boot and container, outside of which process ids mean nothing; or `UNKNOWN`."""
    try:
        boot, container = _BOOT.read_text().strip(), os.readlink("/proc/self/ns/pid")
    except OSError:
        return UNKNOWN
    return hashlib.sha256(f"{boot} {container}".encode()).hexdigest()[:12]


def host() -> str:
    """Returns the name of this host and its machine: hosts may have equal names, process ids and start times."""
    return f"{socket.gethostname()}@{machine()}"


def worldwide_mark() -> str:
    """Returns an identifier of this process that no process of another host has: `host`, its id and start time."""
    return f"{host()} {mark()}"


def is_alive(pid: int, since: str) -> bool:
    """Whether the process identified by `mark` still runs, and its id was not reused by another one.

    Of a process that cannot be looked at, only its id is compared.
    """
    fields = _fields(pid)
    if fields is not None and "." not in since:
        # A killed process stays in the process table, as a zombie, until its parent reaps it, perhaps forever.
        return fields[_STATE] not in {"Z", "X"} and fields[_STARTED] == since
    if not since:
        return _exists(pid)
    try:  # systems without /proc, or a mark written by version 0.1.0
        process = psutil.Process(pid)
        ended = process.status() in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
        return not ended and abs(process.create_time() - float(since)) < 1
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return _exists(pid)
    except ValueError:
        return False


def wait_for_end(pid: int, is_there: Callable[[], bool]) -> None:
    """Returns when a process has ended; it need not be a child.

    Args:
        pid: its id.
        is_there: whether it still runs, and no other process has its id.
    """
    if sys.platform == "linux":
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            if is_there():
                select.select([handle], [], [])  # returns when the process has ended
    else:
        while is_there():
            time.sleep(_LOOK_S)


def _exists(pid: int) -> bool:
    """Whether a process has this id, also where `/proc` hides the processes of other users, or is itself hidden."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is another user's
        pass
    return True


def _fields(pid: int) -> list[str] | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, UnicodeDecodeError):
        return None

"""Processes that end with the one that started them all, however it ended.

The supervisor puts its identity into the environment, which its children and theirs inherit. Each of them that runs
code of ours watches it, and ends all that have that identity, which takes in those that run Dagster's code only.

Not `PR_SET_PDEATHSIG`: it goes by the thread that started a process, and Dagster starts runs from threads that end.
"""

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress

import psutil

from eval_pipeline.core.processes import is_alive, mark

SUPERVISOR = "EVAL_SUPERVISOR"
"""Environment variable: process id and start of the supervisor, and its home."""


def supervise(home: str) -> str:
    """Makes this process the supervisor of all that it starts from now on; its identity."""
    os.environ[SUPERVISOR] = identity = f"{mark()} {home}"
    return identity


def end_with_supervisor() -> None:
    """Has this process end when its supervisor does; nothing where it has none."""
    identity = os.environ.get(SUPERVISOR, "")
    if not identity or identity.split(" ")[0] == str(os.getpid()):
        return
    threading.Thread(target=_watch, args=(identity,), name="supervision", daemon=True).start()


def left_behind(home: str) -> list[psutil.Process]:
    """Processes of a home whose supervisor is gone."""
    return [
        process
        for process, identity in _supervised()
        if identity.split(" ", 2)[2:] == [home] and not is_there(identity)
    ]


def end_left_behind(home: str) -> int:
    """Ends processes of a home whose supervisor is gone; how many there were."""
    found = left_behind(home)
    for process in found:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(found, timeout=5)
    return len(found)


def is_there(identity: str) -> bool:
    """Whether a supervisor lives, and is not another process that got its number."""
    pid, started, _ = identity.split(" ", 2)
    return is_alive(int(pid), started)


def _watch(identity: str) -> None:
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(int(identity.split(" ")[0]))
        if is_there(identity):
            select.select([handle], [], [])  # readable once the process has ended
    for process, theirs in _supervised():
        if theirs == identity and process.pid != os.getpid():
            with suppress(psutil.NoSuchProcess):
                process.kill()
    os.kill(os.getpid(), signal.SIGKILL)


def _supervised() -> Iterator[tuple[psutil.Process, str]]:
    """The processes that have a supervisor, but for supervisors themselves."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            identity = process.environ().get(SUPERVISOR, "")
            if identity.count(" ") >= 2 and identity.split(" ")[0] != str(process.pid):
                yield process, identity

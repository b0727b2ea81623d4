"""Ends all processes of a supervisor when the supervisor itself ends, however it ended.

The supervisor puts its identity into the environment, which all its descendants inherit. Each descendant that runs our
code watches the supervisor. When it ends, the watcher kills every process with that identity, including those that run
only Dagster's code.

`PR_SET_PDEATHSIG` cannot be used: it fires when the thread that started the process ends, and Dagster starts runs from
short-lived threads.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress

import psutil

from eval_pipeline.core.system.processes import is_alive, mark, wait_for_end

SUPERVISOR = "EVAL_SUPERVISOR"
"""Environment variable: process id, start time and home of the supervisor."""


def supervise(home: str) -> str:
    """Makes this process the supervisor of every process it starts from now on, and returns its identity."""
    os.environ[SUPERVISOR] = found = own_identity(home)
    return found


def own_identity(home: str) -> str:
    """Returns the identity that this process has as a supervisor."""
    return f"{mark()} {home}"


def end_with_supervisor() -> None:
    """Makes this process end when its supervisor ends; does nothing without a supervisor."""
    identity = os.environ.get(SUPERVISOR, "")
    if not identity or identity.split(" ")[0] == str(os.getpid()):
        return
    threading.Thread(target=_watch, args=(identity,), name="supervision", daemon=True).start()


def left_behind(home: str) -> list[psutil.Process]:
    """Returns the processes of a home whose supervisor has ended."""
    return [
        process
        for process, identity in _supervised()
        if identity.split(" ", 2)[2:] == [home] and not is_there(identity)
    ]


def end_left_behind(home: str) -> int:
    """Kills the processes of a home whose supervisor has ended, and returns how many there were."""
    found = left_behind(home)
    for process in found:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(found, timeout=5)
    return len(found)


def is_there(identity: str) -> bool:
    """Whether a supervisor still runs; a process that reused its id does not count."""
    pid, started, _ = identity.split(" ", 2)
    return is_alive(int(pid), started)


def _watch(identity: str) -> None:
    wait_for_end(int(identity.split(" ")[0]), lambda: is_there(identity))
    for process, theirs in _supervised():
        if theirs == identity and process.pid != os.getpid():
            with suppress(psutil.NoSuchProcess):
                process.kill()
    os.kill(os.getpid(), signal.SIGKILL)


def _supervised() -> Iterator[tuple[psutil.Process, str]]:
    """Yields all processes that have a supervisor, with its identity; supervisors themselves are left out."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            identity = process.environ().get(SUPERVISOR, "")
            if identity.count(" ") >= 2 and identity.split(" ")[0] != str(process.pid):
                yield process, identity

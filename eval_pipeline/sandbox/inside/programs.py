"""Somebody's own program, which acts in a world until it ends. Nobody trusts it, nor anything that it tells.

It is confined as all that runs in a world; its network has nothing but itself and the door to its model, and what it
has started ends with it.
"""

import fcntl
import os
import select
import stat
import time
from collections.abc import Callable
from typing import Any, NoReturn

from .child import Child, Told
from .separation import Separation
from .sessions import SESSION_CPU_S, WORLD, as_in_a_shell, enter, packages_path

ANSWER = "/scratch/answer"
OWN_NAMES = {
    "/scratch/passwd": "nobody:x:65534:65534::/scratch:/bin/sh\n",
    "/scratch/hosts": "127.0.0.1 localhost box\n::1 localhost\n",
}
"""What it finds as the files of these names in `/etc`: who it is, and names of its machine."""
_KEPT = {1: 1 << 20, 2: 1 << 16, 3: 1 << 12}
"""How many of the last bytes are kept that it writes to standard output and error, and why it cannot be started."""
_MOST_ANSWER, _CHUNK = 1 << 20, 1 << 16
_LOOK_S = 0.05
_ALL_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


class ProgramRun:
    """The program of one attempt."""

    def __init__(self, child: Child, separation: Separation, hear: Callable[[int, float], bool]) -> None:
        """Starts nothing yet.

        Args:
            child: starts it.
            separation: what `child` gives it anew.
            hear: does what is asked meanwhile, given the program's process and how many seconds that may take; returns
                False if nobody asks or waits any more.
        """
        self._child, self._separation, self._hear = child, separation, hear

    def run(self, told: Told, own: int) -> Told:
        """Runs it and returns how it ended.

        Args:
            told: `command`, `environment`, whether it has the `packages` of the session of Python, `text` for its
                standard input, and the `seconds` that it may take.
            own: the socket of who asks; when that is closed, the program is ended.

        Returns:
            `status` as `subprocess` has it, `stopped` with what it used too much of, the ends of `output` and `errors`,
            `answer` with what it wrote to that file, and `problem` if it could not be started.
        """
        deadline = time.monotonic() + told["seconds"]
        found = {name: told[name] for name in ("command", "environment", "packages")}
        given, pipes = _sealed(told["text"]), {number: os.pipe() for number in _KEPT}
        with self._separation.scratch():
            ends = {0: given, **{number: writing for number, (_, writing) in pipes.items()}}
            pid = self._child.start(ends, SESSION_CPU_S, lambda: _start(**found))
            for end in ends.values():
                os.close(end)
            said = _Said({reading: _KEPT[number] for number, (reading, _) in pipes.items()})
            try:
                stopped = self._follow(pid, said, own, deadline)
            finally:
                status = self._child.end(pid)
            output, errors, problem = said.rest()
            return {
                "status": status,
                "stopped": stopped,
                "output": output,
                "errors": errors,
                "problem": problem,
                "answer": _answer(),
            }

    def _follow(self, pid: int, said: "_Said", own: int, deadline: float) -> str | None:
        """Hears it until it ends; returns why it has to be ended, if so."""
        ended = os.pidfd_open(pid)
        try:
            next_look = time.monotonic() + _LOOK_S
            while True:
                ready, _, _ = select.select([ended, own, *said.pipes], [], [], _LOOK_S)
                if ended in ready:
                    return None
                said.hear(ready)
                if own in ready and not self._hear(pid, max(deadline - time.monotonic(), _LOOK_S)):
                    return "left"
                if time.monotonic() >= next_look:
                    if reason := self._child.excess(pid, deadline):
                        return reason
                    next_look = time.monotonic() + _LOOK_S
        finally:
            os.close(ended)


class _Said:
    """What is read from some pipes, of which only the end is kept."""

    def __init__(self, most: dict[int, int]) -> None:
        self.pipes, self._most = list(most), most
        self._kept = {pipe: bytearray() for pipe in most}
        for pipe in most:
            os.set_blocking(pipe, False)

    def hear(self, ready: list[int]) -> None:
        for pipe in [one for one in self.pipes if one in ready]:
            try:
                part = os.read(pipe, _CHUNK)
            except BlockingIOError:  # what was ready is gone: it reads from its own pipe, and need not be heard
                part = b""
            if not part:
                self.pipes.remove(pipe)
            self._kept[pipe] += part
            del self._kept[pipe][: -self._most[pipe]]

    def rest(self) -> list[str]:
        """Returns what is kept of each pipe when nobody writes any more, and closes them."""
        while self.pipes:
            self.hear(list(self.pipes))
        for pipe in self._kept:
            os.close(pipe)
        return [bytes(kept).decode("utf-8", "replace") for kept in self._kept.values()]


def _start(command: list[str], environment: dict[str, str], packages: bool) -> NoReturn:
    """Starts the program, and is the first process among all that it starts, with whose end all end."""
    os.set_inheritable(3, False)  # so that it is closed when the program runs
    pid = os.fork()
    if pid == 0:
        for path, text in OWN_NAMES.items():
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        enter(WORLD)
        as_in_a_shell()
        found = os.environ | environment
        if packages:
            found["PYTHONPATH"] = os.pathsep.join(filter(None, (found.get("PYTHONPATH"), packages_path())))
        try:
            os.execvpe(command[0], command, found)  # noqa: S606
        except (OSError, ValueError) as error:
            os.write(3, str(getattr(error, "strerror", None) or error).encode())
            os._exit(127)
    os.close(3)
    while True:
        ended, status = os.wait()
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _sealed(text: str) -> int:
    """Returns a file in memory with a text, to be read only."""
    file = os.memfd_create("task", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with os.fdopen(os.dup(file), "wb") as writing:
        writing.write(text.encode("utf-8", "replace"))
    os.lseek(file, 0, os.SEEK_SET)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, _ALL_SEALS)
    return file


def _answer() -> Any:
    """Returns what the program has written as its answer; None without one."""
    try:
        file = os.open(ANSWER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        with open(file, "rb", closefd=False) as opened:
            return opened.read(_MOST_ANSWER).decode("utf-8", "replace")
    finally:
        os.close(file)

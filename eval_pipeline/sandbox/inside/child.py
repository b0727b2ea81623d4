"""One snippet in a process of its own, as the zygote starts, watches and ends it. Nothing it writes is trusted."""

import fcntl
import os
import resource
import select
import signal
import time
from typing import Any, NoReturn

from . import privileges, seccomp
from .buffers import Buffer
from .scratch import too_full
from .snippet import namespace, run_snippet

_LOOK_S = 0.05
_RESULT_FD = 3
_MOST_DESCRIPTORS = 64

Configuration = dict[str, Any]
Told = dict[str, Any]


class Child:
    """Runs snippets one after the other, each in a fork of this process.

    Attributes:
        code: the snippet that is run next, UTF-8.
        output, result: what the last one printed and wrote as its result.
    """

    def __init__(self, configuration: Configuration, code: Buffer) -> None:
        self.code = code
        self.output = Buffer(configuration["output_bytes"])
        self.result = Buffer(configuration["result_bytes"])
        self._configuration = configuration

    def run(self, tables: dict[str, Any]) -> Told:
        """Runs `code`: why it was stopped, how its process ended, CPU seconds and peak memory."""
        self.output.clear()
        self.result.clear()
        output, output_end = os.pipe()
        result, result_end = os.pipe()
        deadline = time.monotonic() + self._configuration["wall_s"]
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_snippet(parent, tables, (output_end, result_end))
        self.code.clear()
        os.close(output_end)
        os.close(result_end)
        ended = os.pidfd_open(pid)
        try:
            stopped = self._follow(pid, ended, {output: self.output, result: self.result}, deadline)
        finally:
            _kill(pid)
            _, status, used = os.wait4(pid, 0)
            for descriptor in (output, result, ended):
                os.close(descriptor)
        return {
            "stopped": stopped,
            "status": os.waitstatus_to_exitcode(status),
            "seconds": used.ru_utime + used.ru_stime,
            "peak_bytes": used.ru_maxrss * 1024,
        }

    def _follow(self, pid: int, ended: int, pipes: dict[int, Buffer], deadline: float) -> str | None:
        """Reads the pipes until the process ends, which may have closed them and gone on; why it must be stopped."""
        poll = select.poll()
        for descriptor in (*pipes, ended):
            poll.register(descriptor, select.POLLIN)
        next_look = time.monotonic() + _LOOK_S
        while True:
            ready = {number for number, _ in poll.poll(1000 * _LOOK_S)}
            for pipe in ready & pipes.keys():
                if not pipes[pipe].read(pipe):
                    poll.unregister(pipe)
            if ended in ready:
                for pipe, buffer in pipes.items():
                    _drain(pipe, buffer)
            if ended in ready or self.output.over or self.result.over:
                return "output" if self.output.over else "result" if self.result.over else None
            if time.monotonic() >= next_look:
                if reason := self._excess(pid, deadline):
                    return reason
                next_look = time.monotonic() + _LOOK_S

    def _excess(self, pid: int, deadline: float) -> str | None:
        """What the process has too much of, of that which the kernel does not limit."""
        limits = self._configuration
        if time.monotonic() >= deadline:
            return "wall"
        if _threads(pid) > limits["threads"]:
            return "threads"
        for folder in limits["writable"]:
            if too_full(folder, limits["scratch_bytes"], limits["scratch_files"]):
                return "scratch"
        return None

    def _become_snippet(self, parent: int, tables: dict[str, Any], ends: tuple[int, int]) -> NoReturn:
        """In the child: gives up everything that the code must not have, and runs it."""
        configuration = self._configuration
        try:
            privileges.die_with(parent)
            os.setsid()
            code = bytes(self.code.contents()).decode("utf-8", "surrogatepass")
            # Copies above every number in use first: an end may itself be one of the numbers to be filled.
            copies = [fcntl.fcntl(end, fcntl.F_DUPFD, 100) for end in (ends[0], *ends)]
            for number, copy in enumerate(copies, start=1):
                os.dup2(copy, number)
            _lower_limits(configuration)
            os.closerange(_RESULT_FD + 1, 4096)
            names = namespace(tables)
            if configuration["landlock"]:
                _confine(configuration)
            if configuration["seccomp"]:
                seccomp.install()
            run_snippet(code, names, _RESULT_FD)
        finally:
            os._exit(0)  # nobody looks at it: only a well-formed result counts


def _confine(configuration: Configuration) -> None:
    """Takes the file system away from this process, but for what it reads and its scratch folder."""
    from sandlock import Sandbox, confine

    confine(Sandbox(fs_readable=configuration["landlock"], fs_writable=configuration["writable"]))


def _lower_limits(configuration: Configuration) -> None:
    with open("/proc/self/statm", "rb") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    for kind, limit in (
        (resource.RLIMIT_AS, size + configuration["memory_bytes"]),
        (resource.RLIMIT_CPU, int(configuration["wall_s"]) + 1),
        (resource.RLIMIT_FSIZE, configuration["scratch_bytes"]),
        (resource.RLIMIT_NOFILE, _MOST_DESCRIPTORS),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(kind, (limit, limit))


def _threads(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[17])  # num_threads of proc(5)
    except OSError:  # a /proc that hides processes; memory and time limit threads too
        return 0


def _drain(pipe: int, buffer: Buffer) -> None:
    """Reads what is left in the pipe of a process that has ended."""
    os.set_blocking(pipe, False)
    try:
        while not buffer.over and buffer.read(pipe):
            continue
    except BlockingIOError:  # something else holds the other end; without a filter that can be
        return


def _kill(pid: int) -> None:
    """Ends the process and its group; of a process that has ended only the group is left."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # not a group yet, or ended
            continue

"""Runs a snippet in its own process, which the zygote starts, watches and ends. Nothing that it writes is trusted."""

import fcntl
import json
import os
import resource
import select
import signal
import time
from collections.abc import Callable, Collection
from typing import Any, NoReturn

from . import privileges, seccomp
from .buffers import Buffer
from .exchange import Exchange
from .scratch import too_full
from .separation import Separation
from .snippet import described, namespace, run_snippet

_LOOK_S = 0.05
_RESULT_FD = 3
_MOST_DESCRIPTORS, _MOST_OF_PROGRAM = 64, 1024
_PROGRAM_BYTES, _ROOM = 1 << 29, 4

Configuration = dict[str, Any]
Tables = dict[str, Any]
Told = dict[str, Any]


class Child:
    """Runs snippets one after the other, each in a fork of this process.

    Attributes:
        code: the next snippet to run, UTF-8.
        output, result: what the last one printed and wrote as its result.
    """

    def __init__(self, configuration: Configuration, code: Buffer, separation: Separation | None = None) -> None:
        """Prepares memory for what snippets produce; does not start any.

        Args:
            configuration: see `zygote.serve`.
            code: the buffer with the code of the next snippet.
            separation: what each process gets anew; by default what the configuration says.
        """
        self.code = code
        self.output = Buffer(configuration["output_bytes"])
        self.result = Buffer(configuration["result_bytes"])
        self._configuration = configuration
        self._acts: bool = configuration.get("acts", False)
        self._separation = separation or Separation(configuration["mounted"])

    def run(self, tables: Tables, wall_s: float) -> Told:
        """Runs `code`; returns why it was stopped, how its process ended, CPU seconds and peak memory."""
        code, most = self._text(self.code), self._configuration["result_bytes"]
        return self.do(lambda: run_snippet(code(), namespace(tables), _RESULT_FD, most), wall_s)

    def do(self, work: Callable[[], None], wall_s: float) -> Told:
        """Does some work in a process of its own, which writes its result to descriptor 3; returns as `run`."""
        with self._separation.scratch():
            output, output_end = self.pipe(self.output)
            result, result_end = self.pipe(self.result)
            deadline = time.monotonic() + wall_s
            pid = self.start({1: output_end, 2: output_end, 3: result_end}, wall_s, work)
            _close(output_end, result_end)
            return self._seen(pid, pid, {output: self.output, result: self.result}, deadline)

    def begin(self, ends: dict[int, int], cpu_s: float, work: Callable[[], None], ready: Callable[[], object]) -> int:
        """Starts a process that lives on, with descriptors by number; returns its id once `ready` has returned."""
        with self._separation.scratch():
            pid = self.start(ends, cpu_s, work)
            ready()
            return pid

    def end(self, pid: int) -> int:
        """Ends a process that lives on, and everything that it has started; returns how it ended, as `subprocess`."""
        _kill(pid)
        return os.waitstatus_to_exitcode(os.wait4(pid, 0)[1])

    def check(self, tables: Tables, wall_s: float, next_code: Callable[[], None]) -> Told:
        """Runs the tests in one process and the code in another; the returned figures are those of the code's process.

        Args:
            tables: given to both.
            wall_s: seconds for both together.
            next_code: puts the code into `code`, which first contains the tests and the reference code. The code's
                process is forked after that, so the tests were never in its memory.
        """
        from .checker import check
        from .served import serve_code

        with self._separation.scratch():
            output, output_end = self.pipe(self.output)
            verdict, verdict_end = self.pipe(self.result)
            asking, answering = os.pipe(), os.pipe()
            deadline = time.monotonic() + wall_s
            given, most = self._text(self.code), self._configuration["result_bytes"]

            def tests() -> None:
                told = json.loads(given())
                exchange = Exchange(4, 5, most)
                names = namespace(tables)
                if told["answer"] is not None:
                    names["answer_text"] = told["answer"]
                check(told["tests"], told["reference"], names, exchange, _RESULT_FD)

            ends = {1: 0, 2: 0, 3: verdict_end, 4: answering[0], 5: asking[1]}
            checker = self.start(ends, wall_s, tests)
            _close(verdict_end)
            try:
                self.code.clear()
                next_code()
                ends = {1: output_end, 2: output_end, 3: answering[1], 4: asking[0]}
                pid = self.start(ends, wall_s, lambda: serve_code(given(), namespace(tables), Exchange(4, 3, most)))
                _close(output_end, *asking, *answering)
                return self._seen(pid, checker, {output: self.output, verdict: self.result}, deadline)
            finally:
                _kill(checker)
                os.wait4(checker, 0)

    def pipe(self, buffer: Buffer) -> tuple[int, int]:
        """Returns a pipe for what goes into a buffer; reading from it never blocks this process.

        A snippet can open its pipe for reading and remove what it wrote. Then the pipe is empty although `poll`
        reported data.
        """
        buffer.clear()
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        return reading, writing

    def _text(self, buffer: Buffer) -> Callable[[], str]:
        """Returns a function that reads the contents of a buffer in the process that is forked next."""
        return lambda: bytes(buffer.contents()).decode("utf-8", "surrogatepass")

    def _seen(self, pid: int, last: int, pipes: dict[int, Buffer], deadline: float) -> Told:
        """Waits for a process and returns what happened to it.

        Args:
            pid: the process of the code.
            last: the process with whose end everything ends: the same one, or the one with the tests.
            pipes: the pipes to which both write.
            deadline: on the monotonic clock.
        """
        self.code.clear()
        ended = os.pidfd_open(last)
        try:
            stopped = self.follow(pid, (ended,), pipes, deadline)
        finally:
            _kill(pid)
            _, status, used = os.wait4(pid, 0)
            for descriptor in (*pipes, ended):
                os.close(descriptor)
        return {
            "stopped": stopped,
            "status": os.waitstatus_to_exitcode(status),
            "seconds": used.ru_utime + used.ru_stime,
            "peak_bytes": used.ru_maxrss * 1024,
        }

    def start(self, ends: dict[int, int], wall_s: float, work: Callable[[], None]) -> int:
        """Starts a process that first gives up everything that the code must not have, and then does its work.

        Args:
            ends: its descriptors by number.
            wall_s: limit for its CPU time.
            work: the function to run.
        """
        parent = 0 if self._separation.on else os.getpid()  # 0: how the parent appears from another PID namespace
        pid = self._separation.fork()
        if pid == 0:
            self._become(parent, ends, wall_s, work)
        return pid

    def follow(self, pid: int, ends: Collection[int], pipes: dict[int, Buffer], deadline: float) -> str | None:
        """Reads the pipes of a process (it may close them earlier); returns why it must be stopped, if so.

        Args:
            pid: the process.
            ends: descriptors of which one has something to read as soon as the process has ended, or is done.
            pipes: where what it writes goes to.
            deadline: on the monotonic clock.
        """
        poll = select.poll()
        for descriptor in (*pipes, *ends):
            poll.register(descriptor, select.POLLIN)
        next_look = time.monotonic() + _LOOK_S
        while True:
            ready = {number for number, _ in poll.poll(1000 * _LOOK_S)}
            for pipe in ready & pipes.keys():
                if _read(pipe, pipes[pipe]) == 0:
                    poll.unregister(pipe)
            is_done = not ready.isdisjoint(ends)
            if is_done:
                for pipe, buffer in pipes.items():
                    _drain(pipe, buffer)
            if is_done or self.output.over or self.result.over:
                return "output" if self.output.over else "result" if self.result.over else None
            if time.monotonic() >= next_look:
                if reason := self.excess(pid, deadline):
                    return reason
                next_look = time.monotonic() + _LOOK_S

    def excess(self, pid: int, deadline: float) -> str | None:
        """Returns the resource of which the process uses too much, among those that the kernel does not limit."""
        limits = self._configuration
        if time.monotonic() >= deadline:
            return "wall"
        if self._acts and (reason := _too_many(limits["threads"], limits["memory_bytes"])):
            return reason
        if not self._acts and _threads(pid) > limits["threads"]:
            return "threads"
        for folder in limits["wiped"]:
            if too_full(folder, limits["scratch_bytes"], limits["scratch_files"]):
                return "scratch"
        return None

    def _become(self, parent: int, ends: dict[int, int], wall_s: float, work: Callable[[], None]) -> NoReturn:
        configuration = self._configuration
        try:
            privileges.die_with(parent)
            os.setsid()
            self._separation.enter()
            # First copy above all used numbers, because a descriptor may itself be one of the numbers to be assigned.
            copies = {number: fcntl.fcntl(end, fcntl.F_DUPFD, 100) for number, end in ends.items()}
            for number, copy in copies.items():
                os.dup2(copy, number)
            os.closerange(max(ends) + 1, 4096)
            if configuration["seccomp"]:
                privileges.drop_capabilities()
            _lower_limits(configuration, wall_s)
            if configuration["landlock"]:
                _confine(configuration)
            if configuration["seccomp"]:
                kinds = {name: configuration.get(name, False) for name in ("hosts", "talks")}
                seccomp.install(acts=self._acts, **kinds)
            work()
        # This is before the code runs; such a problem is reported like an exception of the code.
        except OSError as error:
            os.write(_RESULT_FD, json.dumps({"error": described(error)}).encode())
        finally:
            os._exit(0)  # the exit code is ignored: only a well-formed result counts


def _confine(configuration: Configuration) -> None:
    """Removes this process's access to the file system, except for what it must read and its scratch folder."""
    from sandlock import Sandbox, confine

    confine(Sandbox(fs_readable=configuration["landlock"], fs_writable=configuration["wiped"]))


def _lower_limits(configuration: Configuration, wall_s: float) -> None:
    with open("/proc/self/statm", "rb") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    if configuration.get("acts"):
        size = max(size, _PROGRAM_BYTES)  # it may start what maps more than this process does
    talks, space = configuration.get("talks"), (resource.RLIMIT_AS, size + configuration["memory_bytes"])
    if talks:  # a program may reserve addresses as it likes; what all use together is looked at besides
        space = (resource.RLIMIT_DATA, _ROOM * configuration["memory_bytes"])
    for kind, limit in (
        space,
        (resource.RLIMIT_CPU, int(wall_s) + 1),
        (resource.RLIMIT_FSIZE, configuration["scratch_bytes"]),
        (resource.RLIMIT_NOFILE, _MOST_OF_PROGRAM if talks else _MOST_DESCRIPTORS),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(kind, (limit, limit))


def _threads(pid: int) -> int:
    return int(_stat(pid)[17])  # num_threads of proc(5)


def _stat(pid: int | str) -> list[bytes]:
    """Returns what the kernel tells of a process or a thread, from its state on."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:  # it is gone, or /proc hides processes; threads are then only limited by memory and time
        return [b"X", *[b"0"] * 50]


def _too_many(threads: int, memory_bytes: int) -> str | None:
    """Returns which limit is exceeded by all processes that this one sees, which are those of one world's tools.

    Memory that they share counts once; that is only looked at if they would have too much otherwise.
    """
    seen = _listed() - {os.getpid()}
    if len(seen) > threads or sum(map(_threads, seen)) > threads:
        return "threads"
    sizes = {pid: _kib(pid, "status", b"RssAnon:", b"RssShmem:") for pid in seen}
    most = memory_bytes // 1024
    if sum(map(_known, sizes.values())) <= most:
        return None
    shared = {pid: _kib(pid, "smaps_rollup", b"Pss_Anon:", b"Pss_Shmem:") for pid in seen}
    total = sum(_known(sizes[pid] if size is None else size) for pid, size in shared.items())
    return "memory" if total > most else None


def running() -> set[int]:
    """Returns the processes that this one sees, without those that have ended and are still listed.

    Who ends between being listed and being looked at may have started another first: what is new is among them.
    """
    listed = _listed()
    going = {pid for pid in listed if _stat(pid)[0] not in {b"Z", b"X"}}
    return going | (_listed() - listed)


def stands_still(pid: int) -> bool:
    """Returns whether no thread of a process runs: all are stopped, or it has ended."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return True
    return all(_stat(f"{pid}/task/{thread}")[0] in {b"T", b"Z", b"X"} for thread in threads)


def guest() -> int:
    """Returns the process that came from outside into what this one sees, so that no parent of it is seen; or 0."""
    seen = {pid: _stat(pid) for pid in running() - {os.getpid()}}
    return next((pid for pid, told in seen.items() if told[1] == b"0" and told[0] != b"X"), 0)


def descends(pid: int, top: int) -> bool | None:
    """Returns whether a process is another one or comes from it; None if that cannot be told, as one has ended."""
    while pid not in (0, top):
        state, parent, *_ = _stat(pid)
        if state == b"X":
            return None
        pid = int(parent)
    return pid == top


def _listed() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def _known(size: int | None) -> int:
    return size or 0


def _kib(pid: int, file_name: str, *labels: bytes) -> int | None:
    """Returns the sum of some sizes of a process; None if it has ended, or cannot be looked into."""
    try:
        with open(f"/proc/{pid}/{file_name}", "rb") as file:
            words = file.read().split()
    except OSError:
        return None
    return sum(int(words[words.index(label) + 1]) for label in labels if label in words)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _read(pipe: int, buffer: Buffer) -> int | None:
    """Reads what is in a pipe; returns the number of bytes: 0 at its end, None if there is nothing at the moment."""
    try:
        return buffer.read(pipe)
    except BlockingIOError:
        return None


def _drain(pipe: int, buffer: Buffer) -> None:
    """Reads the rest of a pipe whose process has ended; another process may still hold its other end."""
    while not buffer.over and _read(pipe, buffer):
        continue


def _kill(pid: int) -> None:
    """Kills the process and its group; if the process has already ended, only the rest of the group."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it is not a group yet, or has ended
            continue

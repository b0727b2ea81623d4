"""A child process that runs SQL, as seen by its parent; a task that misses its deadline is killed."""

import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from typing import Any

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.core.system.stopped import note_stopped
from eval_pipeline.sandbox.sql.deadline import PATIENCE, Deadline
from eval_pipeline.sandbox.sql.errors import SqlError, SqlFaultError, UnreachableError
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.wire import HEADER_BYTES, body_length, pack, unpack

_START_S = 60.0
_LOOK_S = 1.0
_KEPT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV")


class KilledError(SqlError):
    """The child was ended by SIGKILL, which is not ours: by the system for want of memory, or by somebody else."""


class SqlProcess:
    """One child process. It must not be used by several threads at once.

    Attributes:
        served: number of tasks done so far.
    """

    def __init__(self, limits: SqlLimits, preload: tuple[str, ...] = ()) -> None:
        """Starts it and waits until it is ready.

        Args:
            limits: its memory limit; the other limits are sent with each task.
            preload: modules to import before the memory is limited.

        Raises:
            KilledError: it was killed while it started.
            RuntimeError: it does not start; the message contains its output.
        """
        self.served = 0
        command = [sys.executable, "-m", "eval_pipeline.sandbox.sql.child", str(limits.memory_bytes), *preload]
        kept = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        with tempfile.TemporaryFile() as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                # One arena per thread would use up the address space.
                env=kept | {"MALLOC_ARENA_MAX": "2", "TZ": "UTC"},
            )
            threading.Thread(target=_reaped, args=(self._process,), name="sql child", daemon=True).start()
            try:
                self._receive(Deadline.after(_START_S, self.pid, patience=1.0))
            except (TimeoutError, EOFError) as error:
                if isinstance(error, EOFError) and self._process.wait() == -signal.SIGKILL:
                    raise self._died() from error
                self.kill()
                log.seek(0)
                said = log.read().decode(errors="replace").strip().splitlines()
                why = said[-1] if said else "it said nothing"
                raise RuntimeError(f"the process for SQL did not start: {why}") from error

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can take a task."""
        return self._process.poll() is None

    def call(self, task: str, arguments: tuple[Any, ...], seconds: float, patience: float = PATIENCE) -> Any:
        """Returns the result of a task.

        Args:
            task: `module:function`.
            arguments: arguments of the function; plain values.
            seconds: processor time of the child after which it is killed.
            patience: how many times as long it may take by the clock.

        Raises:
            SqlError: raised by the task; `timeout_error` if it took too long, `memory_error` if it died from lack of
                memory.
            KilledError: somebody else killed the child.
            UnreachableError: the task needs a server that does not answer.
            SqlFaultError: an error in the task's code.
        """
        assert self._process.stdin is not None
        deadline = Deadline.after(seconds, self.pid, patience)
        try:
            self._process.stdin.write(pack({"task": task, "arguments": arguments}))
            self._process.stdin.flush()
            answer = self._receive(deadline)
        except TimeoutError as error:
            told = deadline.told()
            self.kill()
            raise SqlError(ErrorClass.TIMEOUT, f"stopped {told}") from error
        except (EOFError, BrokenPipeError) as error:
            raise self._died() from error
        except ValueError as error:
            self.kill()
            raise SqlError(ErrorClass.SANDBOX, f"the process for SQL gave no well-formed answer: {error}") from error
        except BaseException:  # interrupted: the next task must not get this one's answer
            self.kill()
            raise
        self.served += 1
        return self._opened(answer)

    def stop(self) -> None:
        """Lets the task that another thread waits for end at once, with a KilledError."""
        self._process.kill()

    def kill(self) -> None:
        """Ends the child at once."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:  # nobody reads what was still to be written
                    continue

    def _opened(self, answer: Any) -> Any:
        if not isinstance(answer, dict) or "stopped" in answer or "fault" in answer:
            note_stopped()
        if isinstance(answer, dict) and "result" in answer:
            return answer["result"]
        if isinstance(answer, dict) and "error" in answer:
            error_class, message = answer["error"]
            if error_class == ErrorClass.MEMORY:  # the rest of the address space is fragmented
                self.kill()
            raise SqlError(ErrorClass(error_class), message)
        if isinstance(answer, dict) and "unreachable" in answer:
            raise UnreachableError(answer["unreachable"])
        fault = answer.get("fault") if isinstance(answer, dict) else answer
        raise SqlFaultError(f"a fault while running SQL: {fault}")

    def _died(self) -> SqlError:
        code = self._process.wait()
        self.kill()
        note_stopped()
        if code in (-signal.SIGABRT, -signal.SIGKILL, -signal.SIGSEGV, -signal.SIGBUS):
            why = f"the query ended its process (signal {-code}), as happens without memory"
            return (KilledError if code == -signal.SIGKILL else SqlError)(ErrorClass.MEMORY, why)
        return SqlError(ErrorClass.OTHER, f"the query ended its process (exit code {code})")

    def _receive(self, deadline: Deadline) -> Any:
        length = body_length(self._read(HEADER_BYTES, deadline))
        return unpack(self._read(length, deadline))

    def _read(self, length: int, deadline: Deadline) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
        parts = bytearray()
        while len(parts) < length:
            while not poll.poll(max(left := deadline.left(), 0.0) * 1000):
                if left <= 0:
                    raise TimeoutError
            part = os.read(descriptor, min(length - len(parts), 1 << 20))
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)


def _reaped(process: "subprocess.Popen[bytes]") -> None:
    """Waits until a child has ended, and then takes its exit code, so that an idle one does not stay as a zombie.

    It leaves the child there while it waits (WNOWAIT), since `Popen.wait` would hold the lock that `poll` needs.
    """
    if sys.platform == "linux":
        with suppress(ChildProcessError):  # somebody else has taken it
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    while process.poll() is None:
        time.sleep(_LOOK_S)

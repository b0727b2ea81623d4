"""Reads foreign files in a child process, so that a crash there becomes an error message here."""

import atexit
import json
import logging
import os
import resource
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from importlib import import_module
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

import psutil

from eval_pipeline.core.errors import (
    EndedEarlyError,
    EvalError,
    InputError,
    MissingExtraError,
    Problem,
    StoreError,
    UsageError,
)
from eval_pipeline.core.installed.plugins import OURS, at_fault
from eval_pipeline.core.model import Json
from eval_pipeline.core.system.processes import wait_for_end

MEMORY_MB = "EVAL_READING_MEMORY_MB"
"""Environment variable with the memory limit, in megabytes, for reading one suite or foreign data set.

The default is half of the machine's memory.
"""
CPU_S = 900
MOST_WRITTEN = 8 << 30
"""Size limit, in bytes, of each file that the child process writes."""
_NO_MEMORY = 3
"""Exit code of the child process when it ran out of memory."""
_INTERRUPTED = 130
"""Exit code of the child process when it was interrupted."""
_CHILD = "from eval_pipeline.core.reading.arms_length import main; main()"
_KINDS = (EndedEarlyError, UsageError, StoreError, MissingExtraError, EvalError)
"""Error classes that keep their class between the processes; others arrive as `EvalError`."""

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)
_log = logging.getLogger(__name__)
_parent: IO[bytes] | None = None
"""In the child process: where it writes its messages."""
_ended = False
"""In the child process: whether its function was told to end early."""


def at_arms_length(
    work: Callable[..., Json],
    arguments: Sequence[Json],
    below: Sequence[Path],
    heard: Callable[[int, int], None] = lambda done, total: None,
) -> Json:
    """Calls a function in a child process with limits on memory and CPU time, and returns its result.

    Args:
        work: a module-level function.
        arguments: its arguments.
        below: the foreign files or folders. If the child dies, the error names the one it opened last.
        heard: gets what the function says with `tell_progress`.

    Raises:
        InputError: reading a file killed the child, or its parser failed in an unexpected way.
        EvalError: raised by the function.
        KeyboardInterrupt: it was interrupted, and the function does not end early (`until_ended`).
    """
    _memory_mb()  # reports a wrong setting before anything is read
    names = [os.path.abspath(path) for path in below]
    asked = json.dumps([work.__module__, work.__name__, arguments, names])
    # Without this, each of DuckDB's threads reserves 128 MiB of the allowed memory, and DuckDB crashes when none is
    # left.
    environment = os.environ | {"MALLOC_ARENA_MAX": "2"}
    command = [sys.executable, "-c", _CHILD]
    told, code, interrupted = _run(command, asked.encode(), environment, heard)
    if interrupted and not (code == 0 and told[-1].get("ended")):
        raise KeyboardInterrupt
    opened = [message["opened"] for message in told if "opened" in message]
    if (why := why_ended(code)) is not None:
        raise InputError([Problem(opened[-1] if opened else names[0], None, "", why)])
    last = told[-1]
    if "problems" in last:
        raise InputError([Problem(*problem) for problem in last["problems"]])
    if "error" in last:
        raise next((kind for kind in _KINDS if kind.__name__ == last["kind"]), EvalError)(last["error"])
    if "fault" in last:
        _log.debug("%s", last["trace"])
        raise InputError([Problem(opened[-1] if opened else names[0], None, "", f"cannot be read: {last['fault']}")])
    found: Json = last["result"]
    return found


def _run(
    command: Sequence[str], asked: bytes, environment: Mapping[str, str], heard: Callable[[int, int], None]
) -> tuple[list[Any], int, bool]:
    """Returns the child's messages, its exit code, and whether there was an interrupt, of which the child is told."""
    told, interrupted = list[Any](), False
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment) as child:
        assert child.stdin is not None and child.stdout is not None
        try:
            while True:
                try:
                    if not child.stdin.closed:
                        with suppress(BrokenPipeError), child.stdin:
                            child.stdin.write(asked)
                    for line in iter(child.stdout.readline, b""):
                        if line.endswith(b"\n"):  # the last piece may be incomplete
                            message = json.loads(line)
                            if "progress" in message:
                                heard(*message["progress"])
                            else:
                                told.append(message)
                    return told, child.wait(), interrupted
                except KeyboardInterrupt:
                    if interrupted:
                        raise
                    interrupted = True
                    child.terminate()
        except BaseException:
            child.kill()
            raise


def tell_progress(done: int, total: int) -> None:
    """Tells how much is done, for who waits for this process; does nothing outside such a process."""
    if _parent is not None:
        _tell(_parent, {"progress": [done, total]})


@contextmanager
def until_ended(end: Callable[[], None]) -> Iterator[None]:
    """Calls `end` instead of interrupting the block, if this process is to end; after it, the rest is carried through.

    Does nothing outside a process of `at_arms_length`.
    """
    if _parent is None:
        yield
        return

    def ended(*_: object) -> None:
        global _ended
        _ended = True
        for number in _INTERRUPTS:
            signal.signal(number, signal.SIG_IGN)
        end()

    for number in _INTERRUPTS:
        signal.signal(number, ended)
    yield
    for number in _INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)


def why_ended(code: int) -> str | None:
    """Returns why the reading process died, as shown by its exit code; None if it ended normally."""
    if code == _NO_MEMORY:
        return f"takes more than {_memory_mb():,} MB of memory to read ({MEMORY_MB} sets how much it may)"
    if code == -signal.SIGXCPU:
        return f"takes more than {CPU_S:,} seconds of CPU time to read"
    if code < 0:
        return f"ends the process that reads it ({signal.Signals(-code).name})"
    return None if code == 0 else f"ends the process that reads it (with {code})"


def main() -> None:
    """The function that runs in the child process.

    It reads the task from standard input and writes one message per line to standard output.
    """
    global _parent
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    telling = _parent = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # output printed by a parser must not mix with the messages
    module, name, arguments, names = json.load(sys.stdin)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _limit()
    sys.addaudithook(lambda event, seen: _tell_opened(event, seen, names, telling))
    try:
        outcome = _outcome(getattr(import_module(module), name), arguments)
        atexit._run_exitfuncs()  # sandboxes remove what they left
        _tell(telling, outcome | {"ended": _ended})
    except MemoryError:
        os._exit(_NO_MEMORY)
    except KeyboardInterrupt:
        atexit._run_exitfuncs()
        os._exit(_INTERRUPTED)
    os._exit(0)


def _end_with_parent() -> None:
    parent = os.getppid()
    wait_for_end(parent, lambda: os.getppid() == parent)
    os._exit(1)


def _outcome(work: Callable[..., Json], arguments: Sequence[Json]) -> Json:
    try:
        return {"result": work(*arguments)}
    except MemoryError:
        raise
    except InputError as error:
        return {"problems": [list(astuple(problem)) for problem in error.problems]}
    except EvalError as error:
        return {"error": str(error), "kind": type(error).__name__}
    except Exception as error:  # parsers of foreign files may raise anything
        told, whose = f"{type(error).__name__}: {error}", at_fault(error)
        told += "" if whose == OURS else f" (in the code of {whose})"
        return {"fault": told, "trace": traceback.format_exc()}


def _tell(telling: IO[bytes], message: Json) -> None:
    telling.write(json.dumps(message).encode() + b"\n")


def _limit() -> None:
    memory = _memory_mb() << 20
    bounds = {
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_CPU: CPU_S,
        resource.RLIMIT_FSIZE: MOST_WRITTEN,
        resource.RLIMIT_CORE: 0,
    }
    if sys.platform != "linux":
        del bounds[resource.RLIMIT_AS]  # macOS refuses it
    for kind, most in bounds.items():
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _tell_opened(event: str, seen: tuple[object, ...], names: Sequence[str], telling: IO[bytes]) -> None:
    if event not in {"open", "sqlite3.connect"} or not seen or not isinstance(seen[0], str | Path):
        return
    name = str(seen[0])
    name = os.path.abspath(unquote(urlsplit(name).path) if name.startswith("file:") else name)
    if any(name == known or name.startswith(f"{known}{os.sep}") for known in names):
        _tell(telling, {"opened": name})


def _memory_mb() -> int:
    text = os.environ.get(MEMORY_MB) or "0"
    if not text.isdecimal():
        raise UsageError(f"{MEMORY_MB} is '{text}'; expected a number of megabytes")
    return int(text) or psutil.virtual_memory().total // 2 >> 20

"""Reads foreign files in a child process, so that a crash there becomes an error message here."""

import json
import logging
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import astuple
from importlib import import_module
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

import psutil

from eval_pipeline.core.errors import EvalError, InputError, MissingExtraError, Problem, StoreError, UsageError
from eval_pipeline.core.model import Json

MEMORY_MB = "EVAL_READING_MEMORY_MB"
"""Environment variable with the memory limit, in megabytes, for reading one suite or foreign data set.

The default is half of the machine's memory.
"""
CPU_S = 900
MOST_WRITTEN = 8 << 30
"""Size limit, in bytes, of each file that the child process writes."""
_NO_MEMORY = 3
"""Exit code of the child process when it ran out of memory."""
_CHILD = "from eval_pipeline.core.arms_length import main; main()"
_KINDS = (UsageError, StoreError, MissingExtraError, EvalError)
"""Error classes that keep their class between the processes; others arrive as `EvalError`."""

_log = logging.getLogger(__name__)


def at_arms_length(work: Callable[..., Json], arguments: Sequence[Json], below: Sequence[Path]) -> Json:
    """Calls a function in a child process with limits on memory and CPU time, and returns its result.

    Args:
        work: a module-level function.
        arguments: its arguments.
        below: the foreign files or folders. If the child dies, the error names the one it opened last.

    Raises:
        InputError: reading a file killed the child, or its parser failed in an unexpected way.
        EvalError: raised by the function.
    """
    _memory_mb()  # reports a wrong setting before anything is read
    names = [os.path.abspath(path) for path in below]
    asked = json.dumps([work.__module__, work.__name__, arguments, names])
    # Without this, each of DuckDB's threads reserves 128 MiB of the allowed memory, and DuckDB crashes when none is
    # left.
    environment = os.environ | {"MALLOC_ARENA_MAX": "2"}
    command = [sys.executable, "-c", _CHILD]
    child = subprocess.run(command, input=asked.encode(), env=environment, capture_output=True, check=False)
    told = [json.loads(line) for line in child.stdout.split(b"\n")[:-1]]  # the last piece is empty or incomplete
    opened = [message["opened"] for message in told if "opened" in message]
    if (why := why_ended(child.returncode)) is not None:
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
    telling = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # output printed by a parser must not mix with the messages
    module, name, arguments, names = json.load(sys.stdin)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _limit()
    sys.addaudithook(lambda event, seen: _tell_opened(event, seen, names, telling))
    try:
        _tell(telling, _outcome(getattr(import_module(module), name), arguments))
    except MemoryError:
        os._exit(_NO_MEMORY)
    os._exit(0)


def _end_with_parent() -> None:
    parent = os.getppid()
    with suppress(ProcessLookupError):
        select.select([os.pidfd_open(parent)], [], [])
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
        return {"fault": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}


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

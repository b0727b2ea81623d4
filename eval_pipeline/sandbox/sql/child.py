"""The child process: runs one task after another and returns their results. Started by `process.py`.

A task is `module:function` and its arguments; only the parent names tasks. What a query writes to standard output goes
nowhere, since the results have a descriptor of their own.
"""

import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO

from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import ErrorClass
from eval_pipeline.core.system.stopped import times_stopped
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.wire import HEADER_BYTES, body_length, pack, unpack


def main() -> None:
    """Serves tasks until the parent closes the pipe."""
    memory_bytes, preload = int(sys.argv[1]), sys.argv[2:]
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    for module in preload:
        import_module(module)
    _limit(memory_bytes)
    _tell(answers, {"ready": True})
    tasks = sys.stdin.buffer
    while header := tasks.read(HEADER_BYTES):
        told, before = unpack(tasks.read(body_length(header))), times_stopped()
        _tell(answers, _done(told) | ({"stopped": True} if times_stopped() != before else {}))


def _done(told: dict[str, Any]) -> dict[str, Any]:
    """Returns the result of a task, or its error."""
    try:
        module, _, function = told["task"].partition(":")
        found: Callable[..., Any] = getattr(import_module(module), function)
        return {"result": found(*told["arguments"])}
    except SqlError as error:
        return {"error": [error.error_class.value, error.message]}
    except EvalError as error:
        return {"unreachable": str(error)}
    except MemoryError:
        return {"error": [ErrorClass.MEMORY.value, "the query needs more memory than it may have"]}
    except RecursionError:
        return {"error": [ErrorClass.SYNTAX.value, "the SQL is nested too deeply"]}
    except Exception as error:  # a fault of ours: told, so that it is not taken for the query's
        import traceback

        return {"fault": f"{type(error).__name__}: {error}\n{traceback.format_exc()}"}


def _tell(answers: BinaryIO, message: dict[str, Any]) -> None:
    answers.write(pack(message))
    answers.flush()


def _limit(memory_bytes: int) -> None:
    """Limits the address space to its current size plus `memory_bytes`; prevents core dumps and writing to files.

    On macOS, which refuses such a limit, only the engine limits what it takes.
    """
    if sys.platform == "linux":
        with open("/proc/self/statm", "rb") as file:
            taken = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + memory_bytes, taken + memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _end_with_parent(parent: int) -> None:
    """Ends this process when its parent has ended, even during a query."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    main()

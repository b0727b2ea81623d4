"""In the process of a snippet: the code is run, and its result or its exception written as JSON.

Nothing here is trusted by anybody: the code may replace all of it. It can only harm its own result.
"""

import json
import os
import sys
from types import TracebackType
from typing import Any

from . import seccomp
from .encode import ResultError, encode

FILENAME = "<snippet>"
_LONGEST_MESSAGE = 2000


def run_snippet(code: str, tables: dict[str, Any], result_fd: int, *, with_filter: bool) -> None:
    """Runs the code with the tables under their names (`df` too, where there is one) and writes what became of it."""
    names: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__, **tables}
    if len(tables) == 1:
        names["df"] = next(iter(tables.values()))
    import numpy
    import pandas

    names |= {"pd": pandas, "np": numpy}
    if with_filter:
        seccomp.install()
    try:
        exec(compile(code, FILENAME, "exec"), names)  # noqa: S102 - what the jail is for
        if "result" not in names:
            raise ResultError("the code did not set `result`")
        told = b'{"result":' + encode(names["result"]) + b"}"
    except BaseException as error:
        told = json.dumps({"error": described(error)}).encode("utf-8", "replace")
    finally:
        _flush()
    view = memoryview(told)
    while view:
        view = view[os.write(result_fd, view) :]


def described(error: BaseException) -> dict[str, Any]:
    """Type with its bases, message and line of an exception."""
    try:
        message = str(error)[:_LONGEST_MESSAGE]
    except Exception:  # an exception of the code's own may fail at this too
        message = "(the exception has no text)"
    if isinstance(error, SystemExit):
        message = "the code ended its own process"
    types = [kind.__name__ for kind in type(error).__mro__ if kind is not object]
    return {"types": types, "message": message, "line": _line(error)}


def _line(error: BaseException) -> int | None:
    """The line of the snippet that an exception comes from: the innermost one."""
    if isinstance(error, SyntaxError) and error.filename == FILENAME:
        return error.lineno
    line, trace = None, error.__traceback__
    while isinstance(trace, TracebackType):
        if trace.tb_frame.f_code.co_filename == FILENAME:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: S112 - closed or replaced by the code
            continue

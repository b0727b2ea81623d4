"""In the process of a snippet: the code is run, and its result or its exception written as JSON.

Nothing here is trusted by anybody: the code may replace all of it. It can only harm its own result.
"""

import json
import os
import random
import sys
import types
from typing import Any

from .encode import ResultError, encode

FILENAME = "<snippet>"
_LONGEST_MESSAGE = 2000


def namespace(tables: dict[str, Any]) -> dict[str, Any]:
    """The names that the code finds: its tables (`df` too, where there is one), `pd` and `np`.

    Random numbers start from the same seed every time, so that the same code has the same result.
    """
    import numpy
    import pandas

    random.seed(0)
    numpy.random.seed(0)
    main = types.ModuleType("__main__")
    sys.modules["__main__"], sys.argv = main, [FILENAME]
    main.__dict__.update(pd=pandas, np=numpy, **tables)
    if len(tables) == 1:
        main.__dict__["df"] = next(iter(tables.values()))
    return main.__dict__


def run_snippet(code: str, names: dict[str, Any], result_fd: int) -> None:
    """Runs the code and writes what became of it."""
    try:
        exec(compile(code, FILENAME, "exec"), names)  # noqa: S102 - what the jail is for
        if "result" not in names:
            raise ResultError("the code did not set `result`")
        told = b'{"result":' + encode(names["result"]) + b"}"
    except BaseException as error:
        told = json.dumps({"error": described(error)}).encode()
    finally:
        _flush()
    view = memoryview(told)
    while view:
        view = view[os.write(result_fd, view) :]


def described(error: BaseException) -> dict[str, Any]:
    """Type with its bases, message and line of an exception."""
    try:
        text = error.msg if isinstance(error, SyntaxError) else str(error)  # the line is told apart
        message = str(text)[:_LONGEST_MESSAGE].encode("utf-8", "replace").decode()
    except Exception:  # an exception of the code's own may fail at this too
        message = "(the exception has no text)"
    if isinstance(error, SystemExit):
        message = "the code ended its own process"
    kinds = [kind.__name__ for kind in type(error).__mro__ if kind is not object]
    return {"types": kinds, "message": message, "line": _line(error)}


def _line(error: BaseException) -> int | None:
    """The line of the snippet that an exception comes from: the innermost one."""
    if isinstance(error, SyntaxError) and error.filename == FILENAME:
        return error.lineno
    line, trace = None, error.__traceback__
    while isinstance(trace, types.TracebackType):
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

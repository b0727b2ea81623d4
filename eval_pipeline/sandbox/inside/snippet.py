"""Runs the code of a snippet in its process, and writes its result or its exception as JSON.

Nobody trusts anything here: the code may replace all of it, but it can only damage its own result.
"""

import json
import os
import random
import sys
import types
from typing import Any

FILENAME = "<snippet>"
_LONGEST_MESSAGE = 2000


def namespace(tables: dict[str, Any]) -> dict[str, Any]:
    """Returns the names defined for the code: its tables (including `df`, if there is one), `pd` and `np`.

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


def run_snippet(code: str, names: dict[str, Any], result_fd: int, most: int) -> None:
    """Runs the code and writes the outcome, of which whoever reads it takes no more than `most` bytes."""
    from . import encode as encoding

    try:
        exec(compile(code, FILENAME, "exec"), names)  # noqa: S102 - what the jail is for
        if "result" not in names:
            raise encoding.ResultError("the code did not set `result`")
        told = b'{"result":' + encoding.encode(names["result"], most) + b"}"
    except BaseException as error:
        told = json.dumps({"error": described(error)}).encode()
    finally:
        flush()
    view = memoryview(told)
    while view:
        view = view[os.write(result_fd, view) :]


def described(error: BaseException, filename: str = FILENAME) -> dict[str, Any]:
    """Returns an exception's type with its base classes, message and line (the innermost one in that file)."""
    try:
        text = error.msg if isinstance(error, SyntaxError) else str(error)  # the line is reported separately
        message = str(text)[:_LONGEST_MESSAGE].encode("utf-8", "replace").decode()
    except Exception:  # even this may fail for an exception class defined by the code
        message = "(the exception has no text)"
    if isinstance(error, SystemExit):
        message = "the code ended its own process"
    kinds = [kind.__name__ for kind in type(error).__mro__ if kind is not object]
    return {"types": kinds, "message": message, "line": _line(error, filename)}


def _line(error: BaseException, filename: str) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == filename:
        return error.lineno
    line, trace = None, error.__traceback__
    while isinstance(trace, types.TracebackType):
        if trace.tb_frame.f_code.co_filename == filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def flush() -> None:
    """Writes out what was printed."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: S112 - closed or replaced by the code
            continue

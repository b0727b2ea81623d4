"""Determines the outcome of a snippet from the reports of its zygote and of the snippet itself."""

import signal
from collections.abc import Mapping
from typing import Any

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.returned.error_classes import classify
from eval_pipeline.sandbox.returned.outcomes import Outcome, SnippetFailed, SnippetRan
from eval_pipeline.sandbox.returned.results import read_told

_NO_RESULT = "the process ended without a well-formed result"


def read_outcome(seen: Mapping[str, Any], output: bytes, left: bytes, limits: Limits, tier: str) -> Outcome:
    """Returns the outcome of a snippet.

    Args:
        seen: the zygote's report about the process; trusted.
        output: what the snippet printed.
        left: what the snippet wrote as its result; treated as data only.
        limits: the limits under which it ran.
        tier: the tier that confined it.
    """
    stdout, seconds = output.decode(errors="replace"), float(seen["seconds"])

    def failed(error_class: ErrorClass, message: str, **more: Any) -> SnippetFailed:
        return SnippetFailed(error_class, message, stdout, seconds, tier, **more)

    if seen["stopped"]:
        return failed(*stopped(seen["stopped"], limits))
    match read_told(left):
        case {"result": result}:
            return SnippetRan(result, stdout, seconds, int(seen["peak_bytes"]), tier, len(left))
        case {"error": {"types": [kind, *_] as types, "message": message, "line": line}}:
            return failed(classify(types, message), message, exception=kind, line=line)
    return failed(*_ended(seen["status"]))


def suspicious(outcome: Outcome) -> bool:
    """Whether a snippet was stopped by its limits or by the sandbox.

    If so, and if snippets share the namespaces of their zygote, the zygote is replaced.
    """
    return isinstance(outcome, SnippetFailed) and (
        outcome.exception is None or outcome.error_class is ErrorClass.SANDBOX
    )


def stopped(reason: str, limits: Limits) -> tuple[ErrorClass, str]:
    """Returns error class and message for a process that its zygote stopped."""
    match reason:
        case "wall":
            return ErrorClass.TIMEOUT, f"no result within {limits.wall_s:g} s"
        case "output":
            return ErrorClass.SANDBOX, f"it printed more than {limits.output_bytes:,} bytes"
        case "result":
            return ErrorClass.VALUE, f"its result takes more than {limits.result_bytes:,} bytes"
        case "threads":
            return ErrorClass.SANDBOX, f"it started more than {limits.threads} threads"
        case "memory":
            return ErrorClass.MEMORY, f"it took more than {limits.memory_bytes:,} bytes of memory"
    files, size = f"{limits.scratch_files:,} files", f"{limits.scratch_bytes:,} bytes"
    return ErrorClass.SANDBOX, f"it wrote more than {files} or {size}, or a folder that cannot be looked into"


def _ended(status: int) -> tuple[ErrorClass, str]:
    """Returns error class and message for a process that ended without a result; a negative status is a signal."""
    match -status:
        case signal.SIGXCPU:
            return ErrorClass.TIMEOUT, "it used more CPU time than allowed"
        case signal.SIGKILL:
            return ErrorClass.MEMORY, "the system killed it, most likely for the memory it took"
        case signal.SIGXFSZ:
            return ErrorClass.SANDBOX, "it wrote a file that is larger than allowed"
        case number if number > 0:
            return ErrorClass.OTHER, f"it crashed the interpreter ({_signal_name(number)})"
    return ErrorClass.SANDBOX, _NO_RESULT


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

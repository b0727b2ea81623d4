"""What a process that reads foreign files may do, good and bad: it is imported there."""

import os
import signal
from pathlib import Path

from eval_pipeline.core.errors import EvalError, InputError, Problem, StoreError, UsageError


def doubled(text: str) -> str:
    return text * 2


def crash(path: str) -> None:
    Path(path).read_text()
    os.kill(os.getpid(), signal.SIGSEGV)


def end(code: int) -> None:
    os._exit(code)


def hunger(size: int) -> int:
    return len(bytearray(size))


def fail(kind: str) -> None:
    raise {
        "input": InputError([Problem("a.yaml", 3, "x.y", "expected z"), Problem("b.yaml", None, "", "is empty")]),
        "usage": UsageError("no such thing"),
        "store": StoreError("no room"),
        "other": EvalError("something"),
        "fault": ZeroDivisionError("division by zero"),
        "memory": MemoryError(),
    }[kind]


def chatter(text: str) -> str:
    os.write(1, b"{not a message\n")
    print("nor this")
    return text

"""What a process that reads foreign files may do, good and bad: it is imported there."""

import os
import signal
from contextlib import nullcontext
from pathlib import Path
from threading import Event

from eval_pipeline.core.errors import EvalError, InputError, Problem, StoreError, UsageError
from eval_pipeline.core.reading.arms_length import tell_progress, until_ended


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


def count(ends_early: bool) -> str:
    """Counts to three, and then has work for ever."""
    ended = Event()
    with until_ended(ended.set) if ends_early else nullcontext():
        for number in range(1, 4):
            tell_progress(number, 3)
        ended.wait()
    return "ended"


def chatter(text: str) -> str:
    os.write(1, b"{not a message\n")
    print("nor this")
    return text


def reserved_by_threads() -> int:
    """Bytes of addresses that eight threads take which need 200 KB each; snippets run this too, by its source."""
    import resource
    import threading

    def size() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()

    before, together, measured = size(), threading.Barrier(9), threading.Event()

    def work() -> None:
        _kept = [bytearray(2000) for _ in range(100)]
        together.wait()
        measured.wait()

    for _ in range(8):
        threading.Thread(target=work).start()
    together.wait()
    after = size()
    measured.set()
    return after - before

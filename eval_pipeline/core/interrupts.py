"""Signals that end an event loop, and their handlers."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Puts the handlers of SIGINT and SIGTERM back at the end.

    Dagster puts back that of SIGINT and gives it to SIGTERM as well. A process that a script started with `&` ignores
    SIGINT: from then on nothing but SIGKILL would end it, nor what it starts, which inherits that.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # other threads have no say in it
        return
    before = {number: signal.getsignal(number) for number in INTERRUPTS}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # set by C code
                signal.signal(number, handler)


def run_interruptibly(main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, but SIGINT and SIGTERM cancel `main`; their handlers are called when it has ended.

    A handler that raises, as Dagster's do, would raise in whatever just runs: in a task whose end nobody awaits, or in
    a callback, where asyncio swallows it. What waits for that task would wait for ever.
    """
    found = {number: signal.getsignal(number) for number in INTERRUPTS}
    handlers: dict[int, Callable[[int, Any], Any]] = {number: kept for number, kept in found.items() if callable(kept)}
    if threading.current_thread() is not threading.main_thread():
        handlers = {}  # other threads get no signals
    arrived: list[int] = []

    async def guarded() -> T:
        task = asyncio.current_task()
        assert task is not None

        def interrupt(number: int) -> None:
            arrived.append(number)
            task.cancel()

        for number in handlers:
            asyncio.get_running_loop().add_signal_handler(number, interrupt, number)
        return await main

    try:
        with handlers_kept():  # the loop leaves those of Python behind
            result = asyncio.run(guarded())
    except BaseException:
        if not arrived:
            raise
    if arrived:
        handlers[arrived[0]](arrived[0], None)
        raise KeyboardInterrupt
    return result

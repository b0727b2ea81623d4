"""Signals that end an event loop."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_interruptibly(main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, but SIGINT and SIGTERM cancel `main`; their handlers are called when it has ended.

    A handler that raises, as Dagster's do, would raise in whatever just runs: in a task whose end nobody awaits, or in
    a callback, where asyncio swallows it. What waits for that task would wait for ever.
    """
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
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
        result = asyncio.run(guarded())
    except BaseException:
        if not arrived:
            raise
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if arrived:
        handlers[arrived[0]](arrived[0], None)
        raise KeyboardInterrupt
    return result

"""Handling of SIGINT and SIGTERM around asyncio event loops."""

import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

INTERRUPTS = (signal.SIGINT, signal.SIGTERM)
BEAT_S = 1.5
"""Seconds between two beats: pages that look every second are at most three behind."""


class TwiceInterruptedError(KeyboardInterrupt):
    """Somebody who was told what is waited for does not wait."""


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Restores the handlers of SIGINT and SIGTERM on exit.

    Dagster restores only the handler of SIGINT and installs that one for SIGTERM too. A process that a script started
    with `&` ignores SIGINT. It and its children, which inherit the setting, could then be ended with SIGKILL only.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signal handlers
        return
    before = {number: signal.getsignal(number) for number in INTERRUPTS}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: the handler was set by C code
                signal.signal(number, handler)


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the block, SIGTERM raises KeyboardInterrupt as SIGINT does, so that what is done is published."""
    with handlers_kept():
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        yield


def interrupt() -> NoReturn:
    """Ends what the caller is at as SIGINT would: by its handler, which may raise an error of its own."""
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler) and threading.current_thread() is threading.main_thread():
        handler(signal.SIGINT, None)
    raise KeyboardInterrupt


def interrupt_main() -> bool:
    """Ends what the main thread is at as a signal would; returns whether it has a handler for one."""
    for number in INTERRUPTS:  # a process that a script started with `&` ignores the first
        if callable(signal.getsignal(number)):
            signal.pthread_kill(threading.main_thread().ident or 0, number)
            return True
    return False


def run_interruptibly(main: Coroutine[Any, Any, T], beat: Callable[[], bool] | None = None) -> T:
    """Runs a coroutine like `asyncio.run`, but SIGINT and SIGTERM cancel it; their own handlers are called after that.

    Where a second one comes before all has ended, it raises TwiceInterruptedError.

    `beat` is called every `BEAT_S` meanwhile; where it returns true, the same happens as by SIGINT.

    If a handler raised at once, as Dagster's do, the exception could land in a task that nobody awaits, or in a
    callback, where asyncio swallows it. Whoever waits for that task would wait forever.
    """
    import asyncio  # here, as only those who ask or judge need it

    found = {number: signal.getsignal(number) for number in INTERRUPTS}
    handlers: dict[int, Callable[[int, Any], Any]] = {number: kept for number, kept in found.items() if callable(kept)}
    if threading.current_thread() is not threading.main_thread():
        handlers = {}  # signals reach the main thread only
    arrived: list[int] = []

    async def guarded() -> T:
        task = asyncio.current_task()
        assert task is not None

        def interrupt(number: int) -> None:
            arrived.append(number)
            task.cancel()

        for number in handlers:
            asyncio.get_running_loop().add_signal_handler(number, interrupt, number)
        if beat is None:
            return await main
        beating = asyncio.create_task(_beat(beat, partial(interrupt, signal.SIGINT)))
        try:
            return await main
        finally:
            beating.cancel()

    try:
        with handlers_kept():  # the event loop would leave Python's default handlers behind
            result = asyncio.run(guarded())
    except BaseException:
        if not arrived:
            raise
    if arrived:
        with suppress(KeyboardInterrupt):
            if arrived[0] in handlers:  # not those of a process that ignores SIGINT, or of another thread
                handlers[arrived[0]](arrived[0], None)
        raise TwiceInterruptedError if len(arrived) > 1 else KeyboardInterrupt
    return result


async def _beat(beat: Callable[[], bool], end: Callable[[], None]) -> None:
    import asyncio

    while not beat():
        await asyncio.sleep(BEAT_S)
    end()

"""A deadline for a coroutine that costs nothing where the coroutine never waits."""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


class DeadlineError(Exception):
    """The deadline passed before the coroutine was done; it has been cancelled."""


async def within(deadline: float, coroutine: Coroutine[Any, Any, T]) -> T:
    """What the coroutine returns.

    Its first step is taken before a clock is set: models in process answer in that step, and setting and stopping
    `asyncio.timeout` took longer than all else that a call does.

    Args:
        deadline: by the clock of the event loop; looked at only once the coroutine waits for something.
        coroutine: not started yet.

    Raises:
        DeadlineError: it was not done in time. A TimeoutError of the coroutine's own comes through as it is.
    """
    result: T
    try:
        waits_for = coroutine.send(None)
    except StopIteration as done:
        result = done.value
        return result
    try:
        async with asyncio.timeout_at(deadline) as clock:
            result = await _Begun(coroutine, waits_for)
            return result
    except TimeoutError as error:
        if clock.expired():
            raise DeadlineError from error
        raise


class _Begun:
    """The rest of a coroutine that has already told what it waits for; Python's `await` takes only unbegun ones."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], waits_for: Any) -> None:
        self._coroutine = coroutine
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, Any]:
        waits_for = self._waits_for
        step: Callable[[Any], Any]
        while True:
            try:
                step, given = self._coroutine.send, (yield waits_for)
            except BaseException as error:  # a cancellation too is the coroutine's to deal with
                step, given = self._coroutine.throw, error
            try:
                waits_for = step(given)
            except StopIteration as done:
                return done.value

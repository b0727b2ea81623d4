"""A deadline that can be distinguished from time-outs raised by the awaited code itself."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class DeadlineError(Exception):
    """The deadline passed before the result was there; the awaited task has been cancelled."""


async def within(deadline: float, answer: Awaitable[T]) -> T:
    """Awaits a result until a deadline on the event loop's clock.

    Raises:
        DeadlineError: the result was not there in time. A TimeoutError of the awaited code itself is passed on
            unchanged.
    """
    try:
        async with asyncio.timeout_at(deadline) as clock:
            return await answer
    except TimeoutError as error:
        if clock.expired():
            raise DeadlineError from error
        raise

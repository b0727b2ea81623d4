"""A deadline that can be told from a time-out of the answering side's own."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class DeadlineError(Exception):
    """The deadline passed before the answer was there; what was waited for has been cancelled."""


async def within(deadline: float, answer: Awaitable[T]) -> T:
    """What is awaited, if it is there by a deadline on the clock of the event loop.

    Raises:
        DeadlineError: it was not done in time. A TimeoutError of its own comes through as it is.
    """
    try:
        async with asyncio.timeout_at(deadline) as clock:
            return await answer
    except TimeoutError as error:
        if clock.expired():
            raise DeadlineError from error
        raise

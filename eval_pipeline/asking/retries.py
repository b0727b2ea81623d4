"""Whether and when a failed call is repeated: the retry policy, deadlines, and endpoints that are never reached."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import CallError, FatalCallError


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with jitter; a server's own `retry-after` takes precedence.

    Attributes:
        max_retries: tries after the first one; usually the question's deadline ends them earlier.
        first_pause_s: pause before the first retry; it doubles with each retry.
        longest_pause_s: upper bound of the pause.
        retry_after_cap_s: upper bound for a server's `retry-after`.
        jitter: random share of the pause, so that callers do not all return at the same time.
    """

    max_retries: int = 10
    first_pause_s: float = 1.0
    longest_pause_s: float = 30.0
    retry_after_cap_s: float = 60.0
    jitter: float = 0.25

    def pause(self, error: CallError, retries: int, rng: Random) -> float | None:
        """Returns the seconds to wait before the next try, or None to give up.

        Args:
            error: the failure of the last try.
            retries: number of retries so far.
            rng: source of the jitter.
        """
        if not error.retryable or retries >= self.max_retries:
            return None
        if error.retry_after is not None:
            # The jitter is added on top, so that the call is never repeated earlier than the server asked for.
            return min(max(error.retry_after, 0.0), self.retry_after_cap_s) * (1.0 + self.jitter * rng.random())
        pause = min(self.first_pause_s * 2.0**retries, self.longest_pause_s)
        return pause * (1.0 - self.jitter * rng.random())


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


_TRIES = 3
_FEWEST_QUESTIONS = 3


class Reachability:
    """Ends a run whose endpoint cannot be reached; otherwise every question would be retried until its deadline.

    Once any try was answered, even by an error, connection failures are left to the retry policy.
    """

    def __init__(self, version: ModelVersion) -> None:
        """Starts with no tries."""
        self._version = version
        self._reached = False
        self._unreached: set[str] = set()

    def answered(self) -> None:
        """Records that a try was answered."""
        self._reached = True

    def failed(self, key: str, tries: int, error: CallError, in_flight: int) -> None:
        """Records that a try failed.

        Args:
            key: key of the question.
            tries: number of tries of that question so far.
            error: the failure.
            in_flight: number of questions that may be asked at once.

        Raises:
            FatalCallError: no connection has ever succeeded, although as many different questions as may be asked at
                once (at least three) have been tried three times each.
        """
        if error.kind is CallErrorKind.TIMEOUT:
            return  # a time-out does not tell whether the endpoint was reached
        if error.kind is not CallErrorKind.CONNECTION:
            self._reached = True
        if self._reached or tries < _TRIES:
            return
        self._unreached.add(key)
        if len(self._unreached) >= max(in_flight, _FEWEST_QUESTIONS):
            address = self._version.options.get("base_url")
            raise FatalCallError(
                f"model version '{self._version.name}': provider '{self._version.provider}' cannot be reached"
                f"{f' at {address}' if address else ''} ({len(self._unreached)} questions, each tried {_TRIES} times; "
                f"the last one: {error.message})"
            )

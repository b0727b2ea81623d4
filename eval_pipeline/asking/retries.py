"""The retry policy: whether a failed call is repeated, and after how long."""

from dataclasses import dataclass
from random import Random

from eval_pipeline.providers.base import CallError


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

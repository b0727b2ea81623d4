"""When a failed call is asked again, and after how long."""

from dataclasses import dataclass
from random import Random

from eval_pipeline.providers.base import CallError


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with jitter; a server's own `retry-after` goes before it.

    Attributes:
        max_retries: tries after the first one; mostly the deadline of the question comes before.
        first_pause_s: pause before the first retry; it doubles from retry to retry.
        longest_pause_s: the doubling ends here.
        retry_after_cap_s: a longer `retry-after` is cut to this.
        jitter: share of the pause that is drawn: the callers of a server that pushed back must not return as one.
    """

    max_retries: int = 10
    first_pause_s: float = 1.0
    longest_pause_s: float = 30.0
    retry_after_cap_s: float = 60.0
    jitter: float = 0.25

    def pause(self, error: CallError, retries: int, rng: Random) -> float | None:
        """Seconds to wait before asking again, or None to give up.

        Args:
            error: how the last try failed.
            retries: retries made so far.
            rng: what the jitter is drawn from.
        """
        if not error.retryable or retries >= self.max_retries:
            return None
        if error.retry_after is not None:
            # Never earlier than the server asked for, so the jitter is added on top.
            return min(max(error.retry_after, 0.0), self.retry_after_cap_s) * (1.0 + self.jitter * rng.random())
        pause = min(self.first_pause_s * 2.0**retries, self.longest_pause_s)
        return pause * (1.0 - self.jitter * rng.random())

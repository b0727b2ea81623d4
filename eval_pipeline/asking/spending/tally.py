"""A tally: what one attempt of an agent has used of the limits of its case."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from eval_pipeline.core import shown
from eval_pipeline.core.model import Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import FatalCallError
from eval_pipeline.providers.prices import cost_usd, is_free


class CallLimits(Protocol):
    """Limits of the model's calls in one attempt; None: no limit."""

    @property
    def steps(self) -> int:
        """Number of calls of tools."""

    @property
    def model_calls(self) -> int:
        """Number of calls."""

    @property
    def tokens(self) -> int | None:
        """Tokens of all calls, in and out."""

    @property
    def usd(self) -> float | None:
        """Dollars of all calls."""


def stepped(most: int) -> tuple[str, str]:
    """Returns that the limit of calls of tools is reached, and a sentence on it."""
    return "steps", f"it had not answered after {most} calls of tools"


class CallTally:
    """Counts calls of the model, their tokens and dollars.

    Attributes:
        calls, tokens, usd: so far; where an endpoint does not tell tokens, more than a call can have taken.
    """

    def __init__(self, version: ModelVersion | None, limits: CallLimits) -> None:
        """Nothing yet; without a version no model is asked."""
        self.calls, self.tokens, self.usd = 0, 0, 0.0
        self._version, self._limits = version, limits

    def add(self, response: Response, sizes: Callable[[Response], tuple[int, int]]) -> float | None:
        """Counts a response and returns its cost in dollars, None if that is unknown.

        Args:
            response: what the model said.
            sizes: returns the bytes of what was asked and said, each of which is a token at most.

        Raises:
            FatalCallError: dollars are limited, and the response has no price.
        """
        usage, version = response.usage, self._version
        self.calls += 1
        if None in (usage.input_tokens, usage.output_tokens):
            asked, said = sizes(response)
            usage = replace(
                usage,
                input_tokens=asked if usage.input_tokens is None else usage.input_tokens,
                output_tokens=said if usage.output_tokens is None else usage.output_tokens,
            )
        in_cache = usage.cache_read_tokens + usage.cache_write_tokens
        usage = replace(usage, input_tokens=max(usage.input_tokens or 0, in_cache))  # some do not count these
        self.tokens += (usage.input_tokens or 0) + (usage.output_tokens or 0)
        if response.usd is not None or version is None:
            self.usd += response.usd or 0.0
            return response.usd
        if self._limits.usd is not None and not is_free(version):
            most = cost_usd(version, usage, response.asked_on, batch=False)
            if most is None:
                raise FatalCallError(
                    f"the tasks limit `usd`, and what calls of '{version.name}' cost is unknown: "
                    "give the model version a `price`, or leave that limit out"
                )
            self.usd += most
        return cost_usd(version, response.usage, response.asked_on, batch=False)

    def spent(self, tokens: int = 0, usd: float = 0.0) -> tuple[str, str] | None:
        """Returns which limit of tokens or dollars is reached, if one is, and a sentence on it.

        Args:
            tokens: tokens that calls in flight may take.
            usd: dollars that they may cost.
        """
        limits = self._limits
        if limits.tokens is not None and self.tokens + tokens >= limits.tokens:
            told = f"it had not answered after {self.tokens:,} tokens, and {limits.tokens:,} are allowed"
            return "tokens", told
        if limits.usd is not None and self.usd + usd >= limits.usd:
            allowed, cost = shown.dollars(limits.usd), shown.dollars(self.usd)
            return "usd", f"it had not answered when it had cost {cost}, and {allowed} are allowed"
        return None

    def called(self, calls: int = 0) -> tuple[str, str] | None:
        """Returns that the limit of calls is reached, if it is; `calls` are in flight."""
        if self.calls + calls < self._limits.model_calls:
            return None
        return "model_calls", f"it had not answered after {self._limits.model_calls} calls of the model"

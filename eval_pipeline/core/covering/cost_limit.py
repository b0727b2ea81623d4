"""The limit on everything that a command or a night spends, on all models and judges together."""

import os
from dataclasses import dataclass
from math import inf
from uuid import uuid4

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.shown import dollars

MAX_COST = "EVAL_MAX_COST_USD"
"""Environment variable: the limit in US dollars of each command and each night."""


@dataclass(frozen=True, slots=True)
class CostLimit:
    """The most that everything under one account may cost together.

    Attributes:
        account: what spends, beginning with its kind: `command …`, `night …`, `backfill …` or `run …`.
        usd: US dollars.
    """

    account: str
    usd: float

    @property
    def kind(self) -> str:
        """What spends, in one word."""
        return self.account.partition(" ")[0]

    def reached_text(self, usd: float) -> str:
        """Returns that the limit is reached; a call reserves the most that it could cost, so something may be left."""
        if not usd:
            return f"the limit of {dollars(self.usd)} of the {self.kind} is too small for one call"
        return f"the limit of the {self.kind} is reached, {dollars(usd)} of {dollars(self.usd)}"


def cost_limit(account: str) -> CostLimit | None:
    """Returns the environment's limit for an account; None if there is none.

    Raises:
        UsageError: it is not a positive number.
    """
    text = os.environ.get(MAX_COST, "").strip()
    return CostLimit(account, _dollars(text, MAX_COST)) if text else None


def command_limit(usd: float | None = None) -> CostLimit | None:
    """Returns the limit of a command, which has an account of its own; by default the environment's.

    Raises:
        UsageError: it is not a positive number.
    """
    account = f"command {uuid4().hex}"
    return cost_limit(account) if usd is None else CostLimit(account, _dollars(usd, "max_cost"))


def _dollars(given: str | float, name: str) -> float:
    try:
        usd = float(given)
    except ValueError:
        usd = 0.0
    if not 0 < usd < inf:
        raise UsageError(f"{name} is '{given}'; expected US dollars, more than 0")
    return usd

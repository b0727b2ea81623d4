"""What a right answer costs: a ratio of two sums over clusters, with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from eval_pipeline.statistics._clusters import ONE_CLUSTER, as_numbers
from eval_pipeline.statistics._special import t_critical

_NO_CONVERSATION: Final = "no conversations"
_NO_PRICE: Final = "no price for this model"
_NO_SUCCESS: Final = "no successful conversation"
_NOTHING_SPENT: Final = "nothing was spent"


@dataclass(frozen=True, slots=True)
class RatioEstimate:
    """Cost per success.

    Attributes:
        total: All that was spent, in the unit of the costs (tokens, US dollars), failures included; None where a price
            is unknown or nothing ran.
        successes: Successes over all clusters.
        n: Clusters.
        ratio: ``total / successes``; None without a success or without a total.
        low: Lower end of the 95% interval of the ratio; None where the data carry none.
        high: Upper end of the 95% interval of the ratio; None where ``low`` is.
        reason: Why numbers are missing; None where all are there.
    """

    total: float | None
    successes: int
    n: int
    ratio: float | None
    low: float | None
    high: float | None
    reason: str | None


def cost_per_success(
    costs: ArrayLike, successes: ArrayLike, missing: str = _NO_PRICE, nothing: str = _NO_SUCCESS
) -> RatioEstimate:
    """Cost of one success with an interval on the log of the ratio (statistics.md, "cost_per_correct_answer").

    With t_c and y_c what cluster c cost and how often it succeeded, T and S their sums, R = T / S, the linearised error
    of a ratio (Cochran 1977, Sampling Techniques, chapter 6) is SE^2 = C / (C - 1) * sum_c (t_c - R y_c)^2 / S^2. The
    interval is R * exp(± t * SE / R), t with C - 1 degrees of freedom: a cost is never negative, and with few successes
    its distribution leans far to the right.

    Args:
        costs: Shape (C,), what each cluster cost in all, not negative; NaN where the price is unknown.
        successes: Shape (C,), how many successes each cluster holds: whole numbers, or booleans for one conversation a
            cluster. The same function serves cost per correct turn, with turns counted.
        missing: the reason where a cost is NaN.
        nothing: the reason where there is no success.

    Returns:
        The ratio; null with a reason without a success (the total is kept), without a price, and without clusters. One
        cluster has a ratio and no interval.

    Raises:
        ValueError: If the shapes do not fit, a cost is negative or infinite, or a number of successes is not a whole
            number of at least 0.
    """
    spent, won = as_numbers(costs, "costs"), as_numbers(successes, "successes")
    if spent.shape != won.shape:
        raise ValueError(f"costs and successes must have one shape, got {spent.shape} and {won.shape}")
    if (spent < 0.0).any():
        raise ValueError("costs must not be negative")
    if not ((won >= 0.0) & (won == np.floor(won))).all():
        raise ValueError("successes must be whole numbers of at least 0")
    n, hits = spent.size, int(won.sum())
    if n == 0:
        return RatioEstimate(None, 0, 0, None, None, None, _NO_CONVERSATION)
    if np.isnan(spent).any():
        return RatioEstimate(None, hits, n, None, None, None, missing)
    total = float(spent.sum())
    if hits == 0:
        return RatioEstimate(total, 0, n, None, None, None, nothing)
    ratio = total / hits
    if n == 1:
        return RatioEstimate(total, hits, n, ratio, None, None, ONE_CLUSTER)
    if total == 0.0:
        # No logarithm to put an interval on: a free model is free, as far as this price goes.
        return RatioEstimate(total, hits, n, ratio, None, None, _NOTHING_SPENT)
    # (t_c - R y_c) / (S R) = t_c / T - y_c / S: the difference of two shares, at most 1 whatever the unit.
    shares = spent / total - won / hits
    log_half = t_critical(n - 1) * math.sqrt(float(shares @ shares) * n / (n - 1))
    return RatioEstimate(total, hits, n, ratio, ratio * math.exp(-log_half), ratio * math.exp(log_half), None)

"""Cost of correct answers and quantiles of latency."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
        total: Everything spent, including on failures, in the unit of the costs (tokens, US dollars); None if a price
            is unknown or nothing ran.
        successes: Successes over all clusters.
        n: Clusters.
        ratio: ``total / successes``; None without a success or without a total.
        low: Lower end of the 95% interval of the ratio; None if the data do not allow an interval.
        high: Upper end of the 95% interval of the ratio; None if ``low`` is.
        reason: Why numbers are missing; None if none is.
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
    """Estimates the cost of one success, with an interval on the log scale (statistics.md, "cost_per_correct_answer").

    Let t_c be the cost of cluster c, y_c its number of successes, T and S their sums, and R = T / S. The linearised
    error of the ratio (Cochran 1977, Sampling Techniques, chapter 6) is
    SE^2 = C / (C - 1) * sum_c (t_c - R y_c)^2 / S^2. The interval is R * exp(± t * SE / R), t with C - 1 degrees of
    freedom, because a cost is never negative and its distribution is strongly skewed when successes are few.

    Args:
        costs: Shape (C,), total cost of each cluster, not negative; NaN if the price is unknown.
        successes: Shape (C,), number of successes in each cluster: integers, or booleans if each cluster is one
            conversation. For the cost per correct turn, pass counts of turns.
        missing: the reason to give if a cost is NaN.
        nothing: the reason to give if there is no success.

    Returns:
        The ratio. It is None, with a reason, if there is no success (the total is kept), no price or no cluster. A
        single cluster gives a ratio without an interval.

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
        # The log interval is undefined for a ratio of 0: a free model costs nothing at this price.
        return RatioEstimate(total, hits, n, ratio, None, None, _NOTHING_SPENT)
    # (t_c - R y_c) / (S R) = t_c / T - y_c / S: a difference of two shares, which is at most 1 in any unit.
    shares = spent / total - won / hits
    log_half = t_critical(n - 1) * math.sqrt(float(shares @ shares) * n / (n - 1))
    return RatioEstimate(total, hits, n, ratio, ratio * math.exp(-log_half), ratio * math.exp(log_half), None)


def pareto_front(costs: ArrayLike, accuracies: ArrayLike) -> NDArray[np.bool_]:
    """Finds the models on the Pareto front of cost and accuracy.

    Args:
        costs: Shape (K,), less is better; NaN where unknown.
        accuracies: Shape (K,), more is better; NaN where unknown.

    Returns:
        Shape (K,): True if no other model is at least as good in both respects and better in one. Models with equal
        values are on the front together. A model with an unknown value is not on the front and dominates no other.

    Raises:
        ValueError: If the shapes do not fit or a value is infinite.
    """
    cost, accuracy = as_numbers(costs, "costs"), as_numbers(accuracies, "accuracies")
    if cost.shape != accuracy.shape:
        raise ValueError(f"costs and accuracies must have one shape, got {cost.shape} and {accuracy.shape}")
    cheaper, better = cost[:, None] < cost, accuracy[:, None] > accuracy
    beats = (cheaper | (cost[:, None] == cost)) & (better | (accuracy[:, None] == accuracy)) & (cheaper | better)
    known = ~(np.isnan(cost) | np.isnan(accuracy))
    return np.asarray(known & ~beats[known].any(axis=0), dtype=np.bool_)


class LatencyQuantiles(NamedTuple):
    """Median and tail of latency, in the unit of the values.

    Attributes:
        p50: Half of the calls took no longer; None without calls.
        p95: 95% of the calls took no longer; None without calls.
    """

    p50: float | None
    p95: float | None


def latency_quantiles(values: ArrayLike) -> LatencyQuantiles:
    """Computes p50 and p95 of a latency (statistics.md, "statistics").

    Interpolated linearly between order statistics (Hyndman and Fan 1996, type 7: the default of numpy and most tools).

    Args:
        values: Shape (N,), any unit of time; NaN is missing and dropped.

    Returns:
        The two quantiles; both None without values.

    Raises:
        ValueError: If ``values`` is not one-dimensional or holds an infinity.
    """
    times = as_numbers(values)
    times = times[~np.isnan(times)]
    if times.size == 0:
        return LatencyQuantiles(None, None)
    p50, p95 = np.quantile(times, (0.5, 0.95))
    return LatencyQuantiles(float(p50), float(p95))

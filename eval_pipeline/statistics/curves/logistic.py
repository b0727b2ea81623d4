"""Logistic regression on one regressor with cluster-robust standard errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eval_pipeline.statistics._clusters import NO_TURNS, ONE_CLUSTER, as_codes, as_numbers, as_verdicts
from eval_pipeline.statistics._special import logistic, t_p_value

_MAX_STEPS: Final = 100
_DECREMENT: Final = 1e-14
"""Squared distance to the maximum, in standard errors, below which one more Newton step is exact up to rounding."""
_ROUNDING: Final = 1e-15
"""Relative rounding error of a log likelihood, as a share of the sum of the log odds in it."""
_ALIKE: Final = 1e-8
"""Robust errors below this share of the model-based errors are rounding errors: the conversations do not differ."""


@dataclass(frozen=True, slots=True)
class LogisticFit:
    """logit P(right) = intercept + slope * x.

    Attributes:
        slope: Change of the log odds of a right answer per unit of x; None if no finite estimate exists.
        se: Cluster-robust standard error of the slope; None with fewer than two clusters or without a slope.
        odds_ratio: exp(slope), the factor on the odds per unit of x; None if the slope is None or exp(slope) overflows.
        p_value: Two-sided p-value of slope = 0, from t with C - 1 degrees of freedom; None if ``se`` allows no test.
        intercept: Log odds at x = 0; None if the slope is.
        reason: Why numbers are missing; None if none is.
    """

    slope: float | None
    se: float | None
    odds_ratio: float | None
    p_value: float | None
    intercept: float | None
    reason: str | None


def clustered_logistic(x: ArrayLike, y: ArrayLike, clusters: ArrayLike) -> LogisticFit:
    """Fits by maximum likelihood (iteratively reweighted least squares), with the sandwich error over clusters.

    The fit of statistics.md, "complexity_ceiling":

    Var = C / (C - 1) * H^-1 (sum_c u_c u_c') H^-1, with H the information and u_c the score of cluster c (Liang and
    Zeger 1986; Cameron and Miller 2015). With one regressor the estimate exists if and only if right and wrong answers
    overlap in x (Albert and Anderson 1984). This is checked on the data, not by whether the iteration converges.

    Args:
        x: Shape (N,), the regressor (complexity); NaN is missing.
        y: Shape (N,), 1 for right and 0 for wrong; NaN is missing.
        clusters: Shape (N,), any integers; equal labels, same cluster.

    Returns:
        The fit. If there is no finite estimate, its numbers are None with the reason "no turn has a value", "no
        variation in complexity", "all answers alike" or "separated". The reason "fit did not converge" means that
        floating point is not precise enough, which does not happen if x is a count. Turns with a missing x or y are
        left out.

    Raises:
        TypeError: If the labels are not integers.
        ValueError: If the shapes do not fit, x is infinite, or y is neither 0, 1 nor NaN.
    """
    steps, right, labels = as_numbers(x, "x"), as_verdicts(y, "y"), np.asarray(clusters)
    if not steps.shape == right.shape == labels.shape:
        raise ValueError(f"x, y and clusters must have one shape, got {steps.shape}, {right.shape} and {labels.shape}")
    here = ~(np.isnan(steps) | np.isnan(right))
    if not here.all():
        steps, right, labels = steps[here], right[here], labels[here]
    codes = as_codes(labels, len(labels))
    reason = _why_no_estimate(steps, right)
    if reason is not None:
        return LogisticFit(None, None, None, None, None, reason)

    # Centring at the median and scaling keep full precision for any unit of x, and for outlying levels.
    centre, scale = float(np.median(steps)), float(steps.max() - steps.min())
    z = (steps - centre) / scale
    points, where = np.unique(z, return_inverse=True)
    turns, hits = np.bincount(where).astype(np.float64), np.bincount(where, weights=right).astype(np.float64)
    maximum = _maximise(points, turns, hits)
    if maximum is None:
        return LogisticFit(None, None, None, None, None, "fit did not converge")
    beta, information = maximum
    slope = float(beta[1]) / scale
    intercept = float(beta[0]) - slope * centre
    try:
        odds_ratio = math.exp(slope)
    except OverflowError:
        return LogisticFit(slope, None, None, None, intercept, "slope too steep for an odds ratio")

    count = int(np.count_nonzero(np.bincount(codes)))
    if count < 2:
        return LogisticFit(slope, None, odds_ratio, None, intercept, ONE_CLUSTER)
    residuals = right - logistic(beta[0] + beta[1] * points)[where]
    scores = np.stack([np.bincount(codes, weights=residuals), np.bincount(codes, weights=residuals * z)])
    bread = np.linalg.inv(information)[1]
    se = math.sqrt(float(np.square(bread @ scores).sum()) * count / (count - 1)) / scale
    if se <= _ALIKE * math.sqrt(float(bread[1])) / scale:
        return LogisticFit(slope, 0.0, odds_ratio, None, intercept, "conversations do not differ")
    return LogisticFit(slope, se, odds_ratio, t_p_value(slope / se, count - 1), intercept, None)


def _why_no_estimate(x: NDArray[np.float64], y: NDArray[np.float64]) -> str | None:
    """Returns why the likelihood has no finite maximum; None if it has one."""
    if x.size == 0:
        return NO_TURNS
    if x.min() == x.max():
        return "no variation in complexity"
    right, wrong = x[y == 1.0], x[y == 0.0]
    if right.size == 0 or wrong.size == 0:
        return "all answers alike"
    # If right and wrong answers share just one value of x (quasi-separation), the slope still tends to infinity.
    if right.max() <= wrong.min() or wrong.max() <= right.min():
        return "separated"
    return None


def _maximise(
    x: NDArray[np.float64], turns: NDArray[np.float64], right: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Maximises the likelihood by Newton's method on turns grouped by x, halving each step until it does not fall.

    Args:
        x: Shape (L,), distinct values whose right and wrong answers overlap.
        turns: Shape (L,), turns at each x.
        right: Shape (L,), right answers at each x.

    Returns:
        Intercept and slope, shape (2,), and the information matrix there, shape (2, 2); None if the iteration does
        not converge.
    """
    design = np.stack([np.ones_like(x), x])
    share = float(right.sum() / turns.sum())
    beta = np.array([math.log(share / (1.0 - share)), 0.0])
    current = _log_likelihood(beta, design, turns, right)
    for _ in range(_MAX_STEPS):
        chance = logistic(beta @ design)
        gradient = design @ (right - turns * chance)
        try:
            step = np.linalg.solve(_information(chance, design, turns), gradient)
        except np.linalg.LinAlgError:
            return None
        if float(step @ gradient) <= _DECREMENT:
            beta = beta + step
            return beta, _information(logistic(beta @ design), design, turns)
        size = 1.0
        # A decrease within rounding error does not count.
        least = current - _ROUNDING * (1.0 + float(turns @ np.abs(beta @ design)))
        while (reached := _log_likelihood(beta + size * step, design, turns, right)) < least:
            size /= 2.0
        beta, current = beta + size * step, reached
    return None


def _information(
    chance: NDArray[np.float64], design: NDArray[np.float64], turns: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Returns the Fisher information of intercept and slope, shape (2, 2); ``chance`` is P(right) at each x."""
    return np.asarray((design * (turns * chance * (1.0 - chance))) @ design.T)


def _log_likelihood(
    beta: NDArray[np.float64], design: NDArray[np.float64], turns: NDArray[np.float64], right: NDArray[np.float64]
) -> float:
    """Returns the log likelihood of grouped right and wrong answers."""
    eta = beta @ design
    return float(right @ eta - turns @ np.logaddexp(0.0, eta))

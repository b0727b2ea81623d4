"""The few special functions that this package needs.

``scipy.special`` is not used because its import takes more CPU time than all statistics of a thousand turns. The tests
compare these functions with it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

CONFIDENCE: Final = 0.95
"""Confidence level of every interval in the product."""

_NORMAL: Final = 1.959963984540054
"""Two-sided 95% critical value of the normal distribution: the limit of t's critical value as df grows."""
_ROUNDING: Final = 1e-15


@lru_cache(maxsize=4096)
def t_critical(df: float, alpha: float = 1.0 - CONFIDENCE) -> float:
    """Two-sided critical value of Student's t.

    Uses Newton's method upwards from the normal distribution's value, or from 0. The p-value is convex for t > 0, so no
    step overshoots.

    Args:
        df: Degrees of freedom, at least 1.
        alpha: Probability of a more extreme value, above 0 and below 1.

    Returns:
        The t with P(|T| > t) = alpha; by default 12.706 for one degree of freedom and 1.96 in the limit.

    Raises:
        ValueError: If ``df`` is below 1 or ``alpha`` is not between 0 and 1.
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must be between 0 and 1, got {alpha}")
    t, step = _NORMAL if alpha <= 1.0 - CONFIDENCE else 0.0, math.inf
    while step > _ROUNDING * t:
        step = (t_p_value(t, df) - alpha) / (2.0 * _t_density(t, df))
        t += step
    return t


def t_p_value(statistic: float, df: float) -> float:
    """Two-sided p-value of a t statistic.

    Args:
        statistic: Estimate divided by its standard error.
        df: Degrees of freedom, at least 1.

    Returns:
        P(|T| >= |statistic|), in 0..1: I_x(df / 2, 1 / 2) with x = df / (df + t^2) (Abramowitz and Stegun 26.7.1).
        Small p-values are computed to full relative precision.

    Raises:
        ValueError: If ``df`` is below 1.
    """
    if df < 1:
        raise ValueError(f"degrees of freedom must be at least 1, got {df}")
    square = statistic * statistic
    if square == 0.0:
        return 1.0
    x, rest = 1.0 / (1.0 + square / df), 1.0 / (1.0 + df / square)
    if rest > 1.5 / (df / 2 + 2.5):  # the continued fraction converges fast here; otherwise its mirror image does
        return _incomplete_beta(df / 2, 0.5, x, rest)
    return 1.0 - _incomplete_beta(0.5, df / 2, rest, x)


def logistic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns 1 / (1 + exp(-x)) elementwise, without overflow for any x."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -x)), dtype=np.float64)


def _t_density(t: float, df: float) -> float:
    """Density of Student's t."""
    log_scale = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    return math.exp(log_scale - (df + 1) / 2 * math.log1p(t * t / df))


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """Computes the regularised incomplete beta function I_x(a, b) by Lentz's continued fraction (DLMF 8.17.22).

    Args:
        a: Above 0.
        b: Above 0.
        x: In 0..1, below about (a + 1) / (a + b + 2).
        rest: 1 - x, which the caller may know more precisely than x itself.
    """
    if x == 0.0:
        return 0.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    upper, lower = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    fraction, factor, m = lower, 0.0, 0
    while abs(factor - 1.0) > _ROUNDING:
        m += 1
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            upper, lower = 1.0 + term / upper, 1.0 / (1.0 + term * lower)
            factor = upper * lower
            fraction *= factor
    return math.exp(log_front) * fraction / a

"""Means and rates over turns grouped into conversations, with 95% intervals.

Turns of one conversation are not independent, so all standard errors are clustered (statistics.md, "Uncertainty";
Miller 2024, "Adding Error Bars to Evals", arXiv:2411.00640). With values s_i, mean m, N turns and C clusters,

    SE^2 = C / (C - 1) * sum_c (sum_{i in c} (s_i - m))^2 / N^2,    with C - 1 degrees of freedom.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eval_pipeline.statistics._clusters import NO_TURNS, ONE_CLUSTER, as_codes, as_numbers, as_verdicts
from eval_pipeline.statistics._special import t_critical

Method = Literal["wilson_clustered", "t_clustered", "none"]

_OVERFLOW: Final = "values too large to average"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean or a rate with its uncertainty.

    Attributes:
        n: Turns with a value; missing values are not counted.
        clusters: Conversations (or groups of them) with at least one value.
        mean: Their mean, in the unit of the values (0..1 for a rate); None without turns.
        se: Clustered standard error of the mean, in the same unit; None for fewer than two clusters.
        low: Lower end of the 95% interval; None if ``se`` is.
        high: Upper end of the 95% interval; None if ``se`` is.
        method: How the interval was computed; "none" if there is none.
        reason: Why numbers are missing; None if none is.
    """

    n: int
    clusters: int
    mean: float | None
    se: float | None
    low: float | None
    high: float | None
    method: Method
    reason: str | None


@dataclass(frozen=True, slots=True)
class _Summary:
    """Mean and clustered standard error of the values that are not missing; None if undefined."""

    n: int
    clusters: int
    mean: float | None
    se: float | None


def estimate_mean(
    values: ArrayLike, clusters: ArrayLike, bounds: tuple[float, float] = (-math.inf, math.inf)
) -> Estimate:
    """Estimates a mean with the interval m ± t·SE, t with C - 1 degrees of freedom (statistics.md, "Uncertainty").

    Args:
        values: Shape (N,), any unit; NaN is missing and dropped.
        clusters: Shape (N,), any integers; equal labels, same cluster.
        bounds: Smallest and largest possible value, e.g. 0 and 1; the interval is cut there.

    Returns:
        The estimate. A single cluster gives a mean without an interval; no values give neither.

    Raises:
        TypeError: If the labels are not integers.
        ValueError: If the shapes do not fit or a value is infinite.
    """
    found = _summarise(as_numbers(values), clusters, centre=True)
    if found.mean is None or found.se is None:
        return _without_interval(found)
    half = t_critical(found.clusters - 1) * found.se
    low, high = max(bounds[0], found.mean - half), min(bounds[1], found.mean + half)
    if not (math.isfinite(low) and math.isfinite(high)):
        return Estimate(found.n, found.clusters, found.mean, found.se, None, None, "none", _OVERFLOW)
    return Estimate(found.n, found.clusters, found.mean, found.se, low, high, "t_clustered", None)


def estimate_rate(values: ArrayLike, clusters: ArrayLike) -> Estimate:
    """Estimates a rate with Wilson's interval for clustered data (statistics.md, "Uncertainty").

    This is Wilson's score interval (Wilson 1927) with the effective sample size n_eff = clamp(m(1 - m) / SE^2, 1, N)
    instead of N, and t with C - 1 degrees of freedom instead of z, after Korn and Graubard (1998, Survey Methodology
    24). If SE is 0, the correlation within conversations cannot be estimated, and n_eff = C: each conversation counts
    as one observation.

    Args:
        values: Shape (N,), 1 for right and 0 for wrong; NaN is missing and dropped.
        clusters: Shape (N,), any integers; equal labels, same cluster.

    Returns:
        The estimate; its interval lies in 0..1 and contains the mean. A single cluster gives a mean without an
        interval; no values give neither.

    Raises:
        TypeError: If the labels are not integers.
        ValueError: If the shapes do not fit or a value is neither 0, 1 nor NaN.
    """
    found = _summarise(as_verdicts(values), clusters, centre=False)
    if found.mean is None or found.se is None:
        return _without_interval(found)
    n_effective = float(found.clusters)
    if found.se > 0.0:
        n_effective = min(max(found.mean * (1.0 - found.mean) / found.se**2, 1.0), float(found.n))
    low, high = wilson_interval(found.mean, n_effective, t_critical(found.clusters - 1))
    return Estimate(found.n, found.clusters, found.mean, found.se, low, high, "wilson_clustered", None)


def _summarise(values: NDArray[np.float64], clusters: ArrayLike, *, centre: bool) -> _Summary:
    """Computes mean and clustered standard error of the values that are not NaN.

    Args:
        values: Shape (N,).
        clusters: Shape (N,), integers.
        centre: Whether to subtract the smallest value first. This avoids rounding errors if the values are large and
            close together, and gives exactly 0 if they are equal. Verdicts do not need it: their sums are whole
            numbers, which are exact.
    """
    labels = np.asarray(clusters)
    if labels.shape != values.shape:
        raise ValueError(f"clusters must have shape {values.shape}, got {labels.shape}")
    missing = np.isnan(values)
    if missing.any():
        values, labels = values[~missing], labels[~missing]
    n = values.size
    if n == 0:
        return _Summary(0, 0, None, None)
    codes = as_codes(labels, n)
    turns = np.bincount(codes)
    count = int(np.count_nonzero(turns))
    with np.errstate(over="ignore", invalid="ignore"):
        origin = float(values.min()) if centre else 0.0
        sums = np.bincount(codes, weights=values - origin if centre else values)
        total = float(sums.sum())
        mean = origin + total / n
        # N times a cluster's residual sum: a whole number for verdicts, so that rounding cannot hide an SE of exactly
        # 0.
        residuals = n * sums - total * turns
        se = math.sqrt(float(residuals @ residuals) * (count / (count - 1))) / n**2 if count > 1 else None
    if not math.isfinite(mean):
        return _Summary(n, count, None, None)
    return _Summary(n, count, mean, se if se is not None and math.isfinite(se) else None)


def wilson_interval(rate: float, n: float, t: float) -> tuple[float, float]:
    """Returns the ends of Wilson's interval for a rate seen in ``n`` independent trials, with ``t`` instead of z."""
    spread = t * t / n
    centre = (rate + spread / 2.0) / (1.0 + spread)
    half = t * math.sqrt(rate * (1.0 - rate) / n + spread / (4.0 * n)) / (1.0 + spread)
    # At rates of 0 and 1, the nearer end equals the rate except for rounding errors.
    return max(0.0, min(centre - half, rate)), min(1.0, max(centre + half, rate))


def _without_interval(found: _Summary) -> Estimate:
    """Returns an estimate without an interval, with the reason."""
    reason = NO_TURNS if found.n == 0 else ONE_CLUSTER if found.mean is not None and found.clusters == 1 else _OVERFLOW
    return Estimate(found.n, found.clusters, found.mean, None, None, None, "none", reason)

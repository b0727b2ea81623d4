"""Tests whether two models differ in a graded metric on the same turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eval_pipeline.statistics._clusters import ONE_CLUSTER, as_codes
from eval_pipeline.statistics._special import t_p_value
from eval_pipeline.statistics.intervals import estimate_mean

NO_COMMON_VALUE: Final = "no common turn has a value for both"
_FLIPS: Final = 9_999
_AT_ONCE: Final = 2_000_000
"""Number of random signs drawn at a time, which bounds the memory."""
_TOLERANCE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class PairedMeans:
    """The paired difference of two means; second minus first.

    Attributes:
        n: turns with a value for both.
        clusters: independent groups (conversations) among them.
        first, second: the means; None without turns.
        difference: their difference; None without turns.
        se: its standard error, clustered; None for a single cluster.
        low, high: ends of its 95% interval; None if ``se`` is.
        p_value: of a t test clustered by conversation; None if ``se`` is.
        p_flips: of a test that flips the signs of whole conversations at random; None if ``se`` is.
        reason: why there is no test; None if there is one.
    """

    n: int
    clusters: int
    first: float | None
    second: float | None
    difference: float | None
    se: float | None
    low: float | None
    high: float | None
    p_value: float | None
    p_flips: float | None
    reason: str | None

    @property
    def p_decisive(self) -> float | None:
        """The larger p-value; None without a test."""
        return None if self.p_value is None or self.p_flips is None else max(self.p_value, self.p_flips)


def paired_means(first: ArrayLike, second: ArrayLike, clusters: ArrayLike) -> PairedMeans:
    """Compares the means of two models over the turns for which both have a value.

    Args:
        first: Shape (N,), the first model's values; NaN is missing.
        second: Shape (N,), the second model's values of the same turns and samples.
        clusters: Shape (N,), integers; turns with equal labels belong to the same conversation.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    both = ~(np.isnan(a) | np.isnan(b))
    a, b, labels = a[both], b[both], np.asarray(clusters)[both]
    if not a.size:
        return PairedMeans(0, 0, *(None,) * 8, reason=NO_COMMON_VALUE)
    found = estimate_mean(b - a, labels, (-1.0, 1.0))
    known = (found.n, found.clusters, float(a.mean()), float(b.mean()), found.mean)
    if found.se is None or found.mean is None:
        return PairedMeans(*known, None, None, None, None, None, found.reason or ONE_CLUSTER)
    _, codes = np.unique(as_codes(labels, labels.size), return_inverse=True)
    sums = np.bincount(codes, weights=b - a).astype(np.float64)
    if found.se > 0.0:
        p_value = t_p_value(found.mean / found.se, found.clusters - 1)
    else:  # every conversation differs by the same: only the flips can tell whether that is chance
        p_value = 1.0 if found.mean == 0.0 else 0.0
    return PairedMeans(*known, found.se, found.low, found.high, p_value, _flips(sums), None)


def _flips(sums: NDArray[np.float64]) -> float:
    """Returns the share of random sign flips of conversations, the observed one among them, that differ as much."""
    changed = sums[np.abs(sums) > _TOLERANCE]
    if not changed.size:
        return 1.0
    rng = np.random.default_rng(0)
    observed, left, extreme = abs(float(changed.sum())) - _TOLERANCE, _FLIPS, 1
    while left:
        draws = min(left, max(1, _AT_ONCE // changed.size))
        signs = rng.integers(0, 2, (draws, changed.size), dtype=np.int8) * 2 - 1
        extreme += int((np.abs(signs @ changed) >= observed).sum())
        left -= draws
    return extreme / (_FLIPS + 1)

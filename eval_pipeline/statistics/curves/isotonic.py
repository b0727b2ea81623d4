"""Monotone regression: the non-increasing curve closest to a series of means."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def antitonic(means: ArrayLike, weights: ArrayLike) -> NDArray[np.float64]:
    """Fits the non-increasing curve with the least weighted squared error along the last axis.

    Args:
        means: Shape (..., L), the means in order of level. Means with weight 0 are ignored and may be NaN.
        weights: Shape (..., L), not negative, usually the number of turns; broadcast against ``means``.

    Returns:
        Shape (..., L), exactly non-increasing, without rounding errors. A level without weight takes the value of the
        next level with weight, or of the last one at the end. A row without any weight is NaN.

    Raises:
        ValueError: If the arrays have no axis, a weight is negative or not finite, or a mean with weight is not finite.
    """
    levels, weight = np.broadcast_arrays(np.asarray(means, np.float64), np.asarray(weights, np.float64))
    if levels.ndim == 0:
        raise ValueError("means must have at least one axis")
    if not ((weight >= 0.0) & np.isfinite(weight)).all():
        raise ValueError("weights must be finite and not negative")
    seen = weight > 0.0
    if not np.isfinite(levels[seen]).all():
        raise ValueError("means with weight must be finite")
    return antitonic_from_sums(np.where(seen, levels, 0.0) * weight, weight)


def antitonic_from_sums(sums: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Computes `antitonic` from sums (weight times mean) instead of means; the input is not checked.

    Sums of 0/1 values are whole numbers, so a pooled rate of 3/5 gives exactly the float 0.6 and compares correctly
    with a threshold of 0.6.

    Uses the min-max formula (Robertson, Wright and Dykstra 1988, Order Restricted Statistical Inference, theorem 1.4.4)

        g_i = min over a <= i of max over b >= i of the pooled mean of levels a..b,

    which takes O(L^2) per row without branches. For few levels and thousands of bootstrap draws, this is faster than
    pooling adjacent violators.

    Args:
        sums: Shape (..., L); 0 where the weight is 0.
        weights: Shape (..., L), not negative.

    Returns:
        Shape (..., L), as `antitonic`.
    """
    size = sums.shape[-1]
    fit = np.full(sums.shape, np.inf)
    for first in range(size):
        block_sums = np.cumsum(sums[..., first:], axis=-1)
        block_weights = np.cumsum(weights[..., first:], axis=-1)
        pooled = np.full(block_sums.shape, -np.inf)
        np.divide(block_sums, block_weights, out=pooled, where=block_weights > 0.0)
        highest = np.maximum.accumulate(pooled[..., ::-1], axis=-1)[..., ::-1]
        # Blocks that start after the last level with weight are empty.
        highest = np.where(block_weights[..., -1:] > 0.0, highest, np.inf)
        np.minimum(fit[..., first:], highest, out=fit[..., first:])
    return np.where(np.isinf(fit), np.nan, fit)

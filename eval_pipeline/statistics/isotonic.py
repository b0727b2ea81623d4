"""Monotone regression: the non-increasing curve nearest to a series of means."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def antitonic(means: ArrayLike, weights: ArrayLike) -> NDArray[np.float64]:
    """Weighted least-squares fit that never rises along the last axis.

    Args:
        means: Shape (..., L), the means in order of level. Where the weight is 0 the mean is not looked at and may be
            NaN.
        weights: Shape (..., L), not negative, usually the number of turns; broadcast against ``means``.

    Returns:
        Shape (..., L), non-increasing exactly, not only up to rounding. A level without weight lies between its
        neighbours (it takes the value of the next level with weight, at the end that of the last one); a row with no
        weight at all is NaN.

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
    """`antitonic` for sums (weight times mean) instead of means; input not checked.

    The sums of 0/1 values are whole numbers, so a pooled rate of 3/5 comes out as the float 0.6 and compares as it
    should with a threshold of 0.6.

    By the min-max formula (Robertson, Wright and Dykstra 1988, Order Restricted Statistical Inference, theorem 1.4.4)

        g_i = min over a <= i of max over b >= i of the pooled mean of levels a..b,

    which takes O(L^2) a row and no branches: for the few levels and thousands of bootstrap draws of a ceiling, faster
    than pooling adjacent violators.

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
        # Blocks that start behind the last weight say nothing.
        highest = np.where(block_weights[..., -1:] > 0.0, highest, np.inf)
        np.minimum(fit[..., first:], highest, out=fit[..., first:])
    return np.where(np.isinf(fit), np.nan, fit)

"""Groups turns by level of complexity (complete turns, small levels merged), and fits a falling curve to levels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eval_pipeline.statistics._clusters import as_codes, as_numbers, as_verdicts


def complete(
    levels: ArrayLike, correct: ArrayLike, clusters: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Returns level, verdict and cluster code of the turns whose level and verdict are both known."""
    level, right, labels = as_numbers(levels, "levels"), as_verdicts(correct, "correct"), np.asarray(clusters)
    if not level.shape == right.shape == labels.shape:
        shapes = f"{level.shape}, {right.shape} and {labels.shape}"
        raise ValueError(f"levels, correct and clusters must have one shape, got {shapes}")
    here = ~(np.isnan(level) | np.isnan(right))
    if here.all():  # copies of a million turns take 24 MB
        return level, right, as_codes(labels, len(labels))
    return level[here], right[here], as_codes(labels[here], int(here.sum()))


def merge_small(counts: NDArray[np.int64], least: int) -> tuple[NDArray[np.int64], list[int]]:
    """Merges levels with few turns into groups, starting from the highest level.

    Args:
        counts: Shape (K,), turns at each level, in ascending order of level.
        least: Minimum number of turns in a group.

    Returns:
        The group of each level, shape (K,), ascending; and for each group the index of the level that represents it.
    """
    starts: list[int] = []
    carried = 0
    for index in range(counts.size - 1, -1, -1):
        carried += int(counts[index])
        if carried >= least or index == 0:
            starts.append(index)
            carried = 0 if carried >= least else carried
    starts.reverse()
    if carried and len(starts) > 1:
        # If the lowest level has too few turns, it is merged into the group above, which keeps its own name.
        represented = starts[1:]
        starts = [0, *starts[2:]]
    else:
        represented = starts
    is_start = np.zeros(counts.size, dtype=np.int64)
    is_start[starts[1:]] = 1
    return np.cumsum(is_start), represented


def by_cluster(
    group: NDArray[np.int64], right: NDArray[np.float64], codes: NDArray[np.int64], size: int
) -> NDArray[np.float64]:
    """Counts turns and right answers of each cluster at each level.

    Args:
        group: Shape (N,), the level each turn belongs to, in 0..size - 1.
        right: Shape (N,), 1 for right and 0 for wrong.
        codes: Shape (N,), cluster codes, not negative.
        size: L, the number of levels.

    Returns:
        Shape (C, 2 * L): turns at each level, then right answers at each level. Unused codes have no row.
    """
    cells = codes * size + group
    length = (int(codes.max()) + 1) * size
    turns = np.bincount(cells, minlength=length).reshape(-1, size).astype(np.float64)
    hits = np.bincount(cells, weights=right, minlength=length).reshape(-1, size)
    used = turns.any(axis=1)
    return np.hstack([turns[used], hits[used]])


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

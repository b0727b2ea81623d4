"""Sums by cluster, and the checks of input arrays that all functions of this package share."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

ONE_CLUSTER: Final = "one conversation only"
NO_TURNS: Final = "no turn has a value"

_DENSE_SPAN: Final = 1 << 14
"""Codes in a range up to this size are counted directly.

For a small split, zeroing 16,384 empty bins is cheaper than sorting the codes.
"""


def as_numbers(values: ArrayLike, name: str = "values") -> NDArray[np.float64]:
    """One-dimensional float64 view or copy of ``values``; NaN stands for a missing value.

    Raises:
        ValueError: If ``values`` is not one-dimensional or holds an infinity.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    if np.isinf(array).any():
        raise ValueError(f"{name} must be finite or NaN, got an infinity")
    return array


def as_verdicts(values: ArrayLike, name: str = "values") -> NDArray[np.float64]:
    """Like `as_numbers`, for verdicts: 1 is right, 0 is wrong, NaN is missing.

    Raises:
        ValueError: If a value is neither 0, 1 nor NaN.
    """
    array = as_numbers(values, name)
    if not ((array == 0.0) | (array == 1.0) | np.isnan(array)).all():
        raise ValueError(f"{name} must be 0, 1 or NaN")
    return array


def as_codes(clusters: ArrayLike, size: int) -> NDArray[np.int64]:
    """Converts cluster labels to non-negative integers that ``np.bincount`` accepts.

    Labels that are dense already are only shifted, so some codes may be unused: to get the number of clusters, count
    the codes in use rather than taking the largest.

    Args:
        clusters: Shape (size,), any integers.
        size: The number of values the labels belong to.

    Returns:
        Shape (size,); two codes are equal if and only if their labels are.

    Raises:
        TypeError: If the labels are not integers.
        ValueError: If the number of labels differs from ``size``.
    """
    labels = np.asarray(clusters)
    if labels.shape != (size,):
        raise ValueError(f"clusters must have shape ({size},), got {labels.shape}")
    if size == 0:
        return np.zeros(0, dtype=np.int64)
    if labels.dtype.kind not in "iu":
        raise TypeError(f"clusters must be integers, got {labels.dtype}")
    if labels.dtype.kind == "i":
        # In a narrow integer type the shift below could overflow.
        labels = labels.astype(np.int64, copy=False)
    lowest, highest = labels.min(), labels.max()
    # Python integers, because the difference of two int64 may overflow.
    if int(highest) - int(lowest) <= max(_DENSE_SPAN, 4 * size):
        return np.asarray(labels - lowest, dtype=np.int64)
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.int64)

"""Sums by cluster, and what every function here asks of its input arrays."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

ONE_CLUSTER: Final = "one conversation only"
NO_TURNS: Final = "no turn has a value"

_DENSE_SPAN: Final = 1 << 14
"""Ranges of codes up to this are counted directly: zeroing 16,384 empty bins is cheaper than sorting the codes of a
small split."""


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
    """As `as_numbers`, for arrays of right (1) and wrong (0).

    Raises:
        ValueError: If a value is neither 0, 1 nor NaN.
    """
    array = as_numbers(values, name)
    if not ((array == 0.0) | (array == 1.0) | np.isnan(array)).all():
        raise ValueError(f"{name} must be 0, 1 or NaN")
    return array


def as_codes(clusters: ArrayLike, size: int) -> NDArray[np.int64]:
    """Cluster labels as non-negative integers fit for ``np.bincount``.

    Labels that are dense already are only shifted, so some codes may go unused: count the used ones, do not take the
    largest.

    Args:
        clusters: Shape (size,), any integers.
        size: The number of values the labels belong to.

    Returns:
        Shape (size,); equal where and only where the labels are equal.

    Raises:
        TypeError: If the labels are not integers.
        ValueError: If there is not one label a value.
    """
    labels = np.asarray(clusters)
    if labels.shape != (size,):
        raise ValueError(f"clusters must have shape ({size},), got {labels.shape}")
    if size == 0:
        return np.zeros(0, dtype=np.int64)
    if labels.dtype.kind not in "iu":
        raise TypeError(f"clusters must be integers, got {labels.dtype}")
    if labels.dtype.kind == "i":
        # In a narrow type the shift below could wrap round.
        labels = labels.astype(np.int64, copy=False)
    lowest, highest = labels.min(), labels.max()
    # As Python integers: the difference of two int64 may not be one.
    if int(highest) - int(lowest) <= max(_DENSE_SPAN, 4 * size):
        return np.asarray(labels - lowest, dtype=np.int64)
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.int64)

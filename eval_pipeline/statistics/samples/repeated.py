"""pass@k and pass^k: success in k tries, estimated from several samples of one turn.

Both are computed per turn; their mean over turns and its clustered interval come from `estimate_mean` (statistics.md,
"Uncertainty").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def pass_at_k(n: ArrayLike, c: ArrayLike, k: int) -> NDArray[np.float64]:
    """Estimates the probability that at least one of k samples is right.

    The estimate is 1 - C(n - c, k) / C(n, k), which is unbiased (Chen et al. 2021, arXiv:2107.03374, equation 1).

    Args:
        n: Number of samples, integers of any shape.
        c: Number of right samples, 0..n; broadcast against ``n``.
        k: Tries, at least 1.

    Returns:
        Values in 0..1, of the broadcast shape; NaN (missing, as for `estimate_mean`) where fewer than k samples were
        taken.

    Raises:
        ValueError: If k is below 1 or c is not in 0..n.
    """
    taken, right = _checked(n, c, k)
    return 1.0 - _all_from(taken - right, taken, k)


def pass_hat_k(n: ArrayLike, c: ArrayLike, k: int) -> NDArray[np.float64]:
    """Estimates the probability that all of k samples are right.

    The estimate is C(c, k) / C(n, k), which is unbiased (Yao et al. 2024, tau-bench, arXiv:2406.12045).

    Args:
        n: Number of samples, integers of any shape.
        c: Number of right samples, 0..n; broadcast against ``n``.
        k: Tries, at least 1.

    Returns:
        Values in 0..1, of the broadcast shape; NaN (missing, as for `estimate_mean`) where fewer than k samples were
        taken.

    Raises:
        ValueError: If k is below 1 or c is not in 0..n.
    """
    taken, right = _checked(n, c, k)
    return _all_from(right, taken, k)


def _checked(n: ArrayLike, c: ArrayLike, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Checks both counts and returns them as integers of one shape."""
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    taken, right = np.asarray(n), np.asarray(c)
    if any(a.size and a.dtype.kind not in "iu" for a in (taken, right)):
        raise ValueError(f"n and c must be whole numbers, got {taken.dtype} and {right.dtype}")
    taken, right = np.broadcast_arrays(taken.astype(np.int64), right.astype(np.int64))
    if ((right < 0) | (right > taken)).any():
        raise ValueError("c must lie in 0..n")
    return taken, right


def _all_from(part: NDArray[np.int64], whole: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Returns C(part, k) / C(whole, k), NaN where it is undefined.

    Computed as the product of (part - j) / (whole - j), which needs no factorials and neither overflows nor cancels.
    """
    chance = np.ones(whole.shape)
    for j in range(k):
        chance *= np.maximum(part - j, 0) / np.maximum(whole - j, 1)
    return np.where(whole >= k, chance, np.nan)

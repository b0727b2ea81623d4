"""The exact sign-flip test by conversation, which is McNemar's exact test where each changes by one turn."""

from __future__ import annotations

import math
import sys
from typing import Final

import numpy as np
from numpy.typing import NDArray

_EXACT: Final = 50
"""Up to so many coins the number of ways is a whole number that a float holds exactly."""


def mcnemar_exact(net: NDArray[np.int64]) -> float:
    """Two-sided exact p-value of "neither is better" from what each conversation gained in net.

    If neither of two models is better, each conversation's net gain could as well have had the other sign. The p-value
    is the share of all assignments of signs whose sum is at least as far from 0 (Fisher's randomization test of paired
    differences, 1935). Where no conversation gained or lost more than one turn that is McNemar's exact test (McNemar
    1947), a binomial test of the discordant turns; elsewhere it is its form for clusters, in which turns of one
    conversation change together.

    Gains are small whole numbers, so no assignment is drawn or enumerated: the sum over the k conversations that
    changed by s turns is s (2 B - k), B binomial, and the distributions for each s are convolved. So it is exact for
    any number of conversations.

    Args:
        net: Shape (C,), turns that only the second model got right minus those that only the first one did.

    Returns:
        In 0..1, above 0; 1 where nothing changed.
    """
    sizes, counts = np.unique(np.abs(net[net != 0]), return_counts=True)
    chances = np.ones(1)  # of each sum, from minus the reach so far to the reach
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        steps = np.zeros(2 * size * count + 1)
        steps[:: 2 * size] = _coins(count)
        chances = np.convolve(chances, steps)
    reach = chances.size // 2
    sums = np.abs(np.arange(-reach, reach + 1))
    share = float(chances[sums >= abs(int(net.sum()))].sum())
    # Of a thousand conversations with one sign the share is below the least float, but it is not 0.
    return min(1.0, max(share, sys.float_info.min))


def _coins(count: int) -> NDArray[np.float64]:
    """Chances of 0 to ``count`` heads among so many fair coins; by logarithms where 2**count may be no float."""
    if count <= _EXACT:
        return np.array([math.comb(count, heads) for heads in range(count + 1)]) / 2.0**count
    heads = np.arange(1, count + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(count - heads + 1) - np.log(heads))])
    chances: NDArray[np.float64] = np.exp(logs - count * math.log(2.0))
    return chances

"""The exact sign-flip test by conversation.

It equals McNemar's exact test if no conversation changes by more than one turn.
"""

from __future__ import annotations

import math
import sys
from typing import Final

import numpy as np
from numpy.typing import NDArray

_EXACT: Final = 50
"""Up to this number of coins, 2**count and all binomial coefficients are exact floats."""


def mcnemar_exact(net: NDArray[np.int64]) -> float:
    """Returns the exact two-sided p-value of the hypothesis that neither model is better.

    If neither of two models is better, each conversation's net gain could equally well have the other sign. The p-value
    is the share of all assignments of signs whose sum is at least as far from 0 as the observed one (Fisher's
    randomization test of paired differences, 1935). If no conversation gained or lost more than one turn, this is
    McNemar's exact test (McNemar 1947), a binomial test of the discordant turns. Otherwise it is that test's form for
    clusters, in which the turns of one conversation change together.

    Gains are small whole numbers, so the assignments need not be sampled or enumerated: the sum over the k
    conversations that changed by s turns is s (2 B - k) with B binomial, and the distributions for each s are
    convolved. The result is exact for any number of conversations.

    Args:
        net: Shape (C,), turns that only the second model got right minus those that only the first one did.

    Returns:
        A p-value above 0 and at most 1; 1 if nothing changed.
    """
    sizes, counts = np.unique(np.abs(net[net != 0]), return_counts=True)
    chances = np.ones(1)  # probability of each sum from -reach to +reach
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        steps = np.zeros(2 * size * count + 1)
        steps[:: 2 * size] = _coins(count)
        chances = np.convolve(chances, steps)
    reach = chances.size // 2
    sums = np.abs(np.arange(-reach, reach + 1))
    share = float(chances[sums >= abs(int(net.sum()))].sum())
    # For a thousand conversations with the same sign, the p-value underflows to 0, although it is not 0.
    return min(1.0, max(share, sys.float_info.min))


def _coins(count: int) -> NDArray[np.float64]:
    """Returns the probabilities of 0 to ``count`` heads in ``count`` fair tosses.

    Uses logarithms if 2**count is too large.
    """
    if count <= _EXACT:
        return np.array([math.comb(count, heads) for heads in range(count + 1)]) / 2.0**count
    heads = np.arange(1, count + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(count - heads + 1) - np.log(heads))])
    chances: NDArray[np.float64] = np.exp(logs - count * math.log(2.0))
    return chances

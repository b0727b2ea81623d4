"""McNemar's exact test, for turns that come in conversations."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray


def mcnemar_exact(net: NDArray[np.int64]) -> float:
    """Two-sided exact p-value of "neither is better" from what each conversation gained in net.

    If neither of two models is better, each conversation's net gain could as well have had the other sign. The p-value
    is the share of all assignments of signs whose sum is at least as far from 0. Where no conversation gained or lost
    more than one turn that is McNemar's exact test (McNemar 1947), a binomial test of the discordant turns; elsewhere
    it is its form for clusters, in which turns of one conversation change together.

    Args:
        net: Shape (C,), turns that only the second model got right minus those that only the first one did.

    Returns:
        In 0..1, above 0; 1 where nothing changed.
    """
    steps = np.abs(net[net != 0])
    reach, seen = int(steps.sum()), abs(int(net.sum()))
    chances = np.zeros(2 * reach + 1)  # of each sum from -reach to reach
    chances[reach] = 1.0
    for step in steps.tolist():
        spread = np.zeros_like(chances)
        spread[step:] += chances[:-step] / 2.0
        spread[:-step] += chances[step:] / 2.0
        chances = spread
    sums = np.abs(np.arange(-reach, reach + 1))
    share = float(chances[sums >= seen].sum())
    # Of a thousand conversations with one sign the share is below the least float, but it is not 0.
    return min(1.0, max(share, sys.float_info.min))

"""Draws a fixed number of units with unequal, known probabilities."""

from __future__ import annotations

import numpy as np

from eval_pipeline.statistics.adaptive.units import Floats, Integers


def inclusion_probabilities(scores: Floats, n: int) -> Floats:
    """Returns probabilities proportional to scores, cut at 1, whose sum is ``n``.

    Args:
        scores: Shape (units,), above 0.
        n: Number of units to draw, from 0 to the number of units.

    Raises:
        ValueError: If ``n`` is out of range or a score is not a finite number above 0.
    """
    if not 0 <= n <= len(scores):
        raise ValueError(f"cannot draw {n} of {len(scores)} units")
    if not (np.isfinite(scores).all() and (scores > 0.0).all()):
        raise ValueError("scores must be finite numbers above 0")
    certain = np.zeros(len(scores), dtype=bool)
    while True:
        rest = ~certain
        chances = np.ones(len(scores))
        if not rest.any():
            return chances
        chances[rest] = (n - certain.sum()) * scores[rest] / scores[rest].sum()
        above = rest & (chances >= 1.0)
        if not above.any():
            return chances
        certain |= above


def systematic(probabilities: Floats, order: Integers, start: float) -> Integers:
    """Draws units by equal steps along their cumulated probabilities (Madow 1949).

    If ``start`` is uniform, each unit is drawn with exactly its probability, in any order; with a random order, all
    pairs are possible.

    Args:
        probabilities: Shape (units,), in 0..1, with a whole number as sum.
        order: Shape (units,), a permutation.
        start: In [0, 1).

    Returns:
        Positions of the drawn units, ascending.
    """
    ends = np.cumsum(probabilities[order])
    n = round(float(ends[-1])) if len(ends) else 0
    if n == 0:
        return np.zeros(0, dtype=np.int64)
    # Rounding must not push the last step over the end, nor let a certain unit be passed by.
    ends *= n / ends[-1]
    ends[-1] = n
    found = np.searchsorted(ends, start + np.arange(n), side="right")
    return np.sort(order[np.minimum(found, len(order) - 1)])

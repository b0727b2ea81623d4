"""Draws a fixed number of units with unequal, known probabilities."""

from __future__ import annotations

from typing import Final

import numpy as np

from eval_pipeline.statistics.adaptive.units import Floats, Integers

_CERTAIN: Final = 1.0 - 1e-9
"""Probability from which on a unit is certain: far above the rounding errors of cumulated sums of a million units."""


def inclusion_probabilities(scores: Floats, n: int) -> Floats:
    """Returns probabilities proportional to scores, cut at 1, whose sum is ``n``.

    Args:
        scores: Shape (units,), above 0.
        n: Number of units to draw, from 0 to the number of units.

    Raises:
        ValueError: If ``n`` is out of range, a score is not a finite number above 0, or scores differ so much that a
            unit could not be drawn at all.
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
        above = rest & (chances >= _CERTAIN)
        if not above.any():
            break
        certain |= above
    if n and not (chances > 0.0).all():
        raise ValueError("scores differ so much that some units could not be drawn")
    return chances


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
    # Certain units take no part: through rounding, a step could miss one, or two steps could meet it.
    certain = probabilities >= _CERTAIN
    open_to = order[~certain[order]]
    ends = np.cumsum(probabilities[open_to])
    n = round(float(ends[-1])) if len(ends) else 0
    if n == 0:
        return np.flatnonzero(certain)
    # Rounding must not push the last step over the end.
    ends *= n / ends[-1]
    ends[-1] = n
    found = np.searchsorted(ends, start + np.arange(n), side="right")
    return np.sort(np.r_[np.flatnonzero(certain), open_to[np.minimum(found, len(open_to) - 1)]])

"""How much the difference of two models would vary over suites of other such cases, from a part of one suite.

With all cases asked it is the clustered variance of `intervals`: C / (C - 1) times the squared sums of the clusters'
deviations. Of cases that are not asked, the expected squares are added: their variances, and for each two of a cluster
the part of it that residuals within clusters share, which the asked cases show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from eval_pipeline.statistics.adaptive.units import Floats, Integers

_ALIKE: Final = 0.3
"""Correlation of two residuals of a cluster, before pairs are asked."""
_PAIRS: Final = 10.0
"""It counts as if so many pairs had shown it."""
FEWEST_CLUSTERS: Final = 6
"""With fewer, even a change of all in one direction is not rarer than 5% (as in `paired`)."""


@dataclass(frozen=True)
class Spread:
    """A variance, and the degrees of freedom that it has been estimated with."""

    variance: float
    freedom: float


UNKNOWN: Final = Spread(1.0, 1.0)
"""With it, an interval has all differences."""


def suite_spread(
    deviations: Floats, residuals: Floats, variances: Floats, asked: np.ndarray[tuple[int], np.dtype[np.bool_]],
    clusters: Integers, turns: int,
) -> Spread:  # fmt: skip
    """Estimates the variance of a suite's mean, as of a sample of clusters.

    Args:
        deviations: Shape (units,), of each unit's sum from its share of the mean, as expected where it is not asked.
        residuals: Shape (units,), of each unit's sum from what is expected; any value where it is not asked.
        variances: Shape (units,), expected squares of the residuals.
        asked: Shape (units,).
        clusters: Shape (units,), codes from 0; at least two.
        turns: Number of turns of the suite.
    """
    number = int(clusters.max()) + 1
    errors = np.sqrt(variances)
    seen = _pairs(np.where(asked, errors, 0.0), clusters)
    assumed = _PAIRS * float(variances.mean())
    alike = (_pairs(np.where(asked, residuals, 0.0), clusters) + _ALIKE * assumed) / (seen + assumed)
    shared = min(max(alike, 0.0), 1.0) * (_pairs(errors, clusters) - seen)
    squares = float((np.bincount(clusters, deviations) ** 2).sum()) + float(variances[~asked].sum()) + shared
    return Spread(number / (number - 1) * squares / turns**2, _freedom(deviations[asked], clusters[asked]))


def _pairs(values: Floats, clusters: Integers) -> float:
    """Sum of the products of all ordered pairs of different units of a cluster."""
    return float((np.bincount(clusters, values) ** 2).sum() - (values**2).sum())


def _freedom(deviations: Floats, clusters: Integers) -> float:
    """By how much the squares of the asked clusters vary (Satterthwaite 1946), at most one less than their number."""
    if not len(deviations):
        return 1.0
    _, codes = np.unique(clusters, return_inverse=True)
    squares = np.bincount(codes, deviations) ** 2
    noise, most = float(len(squares) * squares.var()), len(squares) - 1.0
    return max(1.0, min(2.0 * float(squares.sum()) ** 2 / noise, most) if noise > 0.0 else most)


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

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

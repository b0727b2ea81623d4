"""Critical values for a fixed schedule of looks.

A run may stop after each batch, so its interval must hold at all looks at once. The number of looks is fixed beforehand
and each may err with a given part of the total (error spending; Lan and DeMets 1983, "Discrete Sequential Boundaries
for Clinical Trials"): an equal one, or for comparisons that of `spending`. The correlation between looks is known: the
sum of the weighted errors of batches is a martingale, so the errors at two looks correlate by the root of the ratio of
their information. The boundary follows by integrating over the paths that have not crossed it yet (Armitage, McPherson
and Rowe 1969). For 4 equal looks it ends at 2.25 where Bonferroni has 2.50. The variance is estimated from as many
answers as there are at a look, so the boundary is that of Student's t instead of the normal distribution (`student`).

Confidence sequences (Waudby-Smith and Ramdas 2024) hold without any schedule and for any sample size, but pay for looks
after each single turn, which runs that ask in batches never take.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np

from eval_pipeline.statistics._special import t_critical
from eval_pipeline.statistics.adaptive.units import Floats

_GRID: Final = 161
"""Points of the density; a finer one changes critical values by less than 0.001."""
_SPENT: Final = ((0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0), (0.0, 0.03, 0.12, 0.28, 0.62, 0.78, 1.0))
"""Share of the suite, and of the error that a comparison has spent by then."""
_PRECISE: Final = 1e-6
_STEPS: Final = 60
_FEW: Final = 4.0
"""Degrees of freedom below which the expansion of Student's t is too far off."""
_STEP: Final = 200
"""Ratios of information are rounded down to so many steps, which makes boundaries wider and lets them be kept."""


def spending(asked: Sequence[int]) -> tuple[float, ...]:
    """Shares of the error that a comparison has spent by each look of a schedule.

    Most of it is spent around half of the suite. At the first look even a large difference is rarely decided wrongly,
    and a small one is rarely decided at all; an equal part for each look would decide later and find less
    (docs/adaptive-statistics.md has the figures).

    Args:
        asked: Total number of units asked by each look of the schedule, ascending.
    """
    last = asked[-1]
    return tuple(float(share) for share in np.interp([number / last for number in asked], *_SPENT))


def critical(
    confidence: float, look: int, looks: int, information: Sequence[float] = (), spent: Sequence[float] = ()
) -> float:
    """Critical value of one look, such that the error probability of all looks together is at most 1 - confidence.

    Args:
        confidence: Above 0 and below 1.
        look: From 1.
        looks: Number of looks of the schedule.
        information: Information of each look up to this one, ascending, on any scale. Without it, nothing is assumed
            about the correlation of looks (Bonferroni).
        spent: Share of the error that is spent by each look of the schedule, ascending from above 0 to at most 1; by
            default, each look may spend the same.

    Raises:
        ValueError: If confidence is not between 0 and 1, look not from 1 to looks, or information or the spent shares
            are not ascending.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")
    if not 1 <= look <= looks:
        raise ValueError(f"look must be from 1 to {looks}, got {look}")
    shares = np.diff(np.r_[0.0, spent if len(spent) else np.arange(1, looks + 1) / looks])
    if len(shares) != looks or (shares <= 0.0).any() or shares.sum() > 1.0 + 1e-9:
        raise ValueError(f"the spent shares of {looks} looks must grow to at most 1, got {list(spent)}")
    parts = tuple(float(part) for part in (1.0 - confidence) * shares[:look])
    if len(information) != look:
        return _normal(parts[-1])
    ratios = [before / after for before, after in itertools.pairwise(information)]
    if not all(0.0 <= ratio <= 1.0 for ratio in ratios):
        raise ValueError("information must grow from look to look")
    return _boundary(parts, tuple(min(math.floor(r * _STEP) / _STEP, 1.0 - 1.0 / _STEP) for r in ratios))


def student(z: float, freedom: float) -> float:
    """Student's t that is exceeded as seldom as the normal ``z``, for a variance that is estimated itself.

    By the expansion of Fisher and Cornish (Abramowitz and Stegun 26.7.5), where it is right to 2%; with fewer degrees
    of freedom it would be too small, and the exact one is computed, which takes longer.

    Args:
        z: From 0.
        freedom: Degrees of freedom, at least 1.
    """
    if freedom < _FEW:
        return t_critical(freedom, 2.0 * NormalDist().cdf(-z)) if z > 0.0 else 0.0
    square = z * z
    terms = (
        (square + 1.0) / 4.0,
        ((5.0 * square + 16.0) * square + 3.0) / 96.0,
        (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0,
        ((((79.0 * square + 776.0) * square + 1482.0) * square - 1920.0) * square - 945.0) / 92160.0,
    )
    return z * (1.0 + sum(term / freedom**power for power, term in enumerate(terms, start=1)))


def _normal(alpha: float) -> float:
    return NormalDist().inv_cdf(1.0 - alpha / 2.0)


@lru_cache(maxsize=1 << 13)
def _boundary(parts: tuple[float, ...], ratios: tuple[float, ...]) -> float:
    """Critical value of the last look.

    The probability of crossing it falls with the boundary and is convex, so that Newton's method converges from the
    left without overshooting; from the right, the first step leads to the left.
    """
    if not ratios:
        return _normal(parts[-1])
    before, mass = _within(parts[:-1], ratios[:-1])
    # Z = sqrt(r) Z_before + sqrt(1 - r) noise
    centre, spread = before * math.sqrt(ratios[-1]), math.sqrt(1.0 - ratios[-1])
    most = boundary = _normal(parts[-1])
    for _ in range(_STEPS):
        z = (boundary - centre) / spread
        # Paths cross upwards as often as downwards.
        crossed = 2.0 * float(mass @ _above(z))
        falls = 2.0 * float(mass @ _density(z)) / spread
        step = (crossed - parts[-1]) / falls if falls > 0.0 else -spread
        boundary = min(max(boundary + step, 0.0), most)
        if abs(step) < _PRECISE:
            break
    return boundary


@lru_cache(maxsize=1 << 13)
def _within(parts: tuple[float, ...], ratios: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Points, in standard errors, and weights of the paths that have stayed within all boundaries so far."""
    nodes, weights = _nodes()
    last = _boundary(parts, ratios)
    z = nodes * last
    if not ratios:
        return z, weights * last * _density(z)
    before, mass = _within(parts[:-1], ratios[:-1])
    centre, spread = before * math.sqrt(ratios[-1]), math.sqrt(1.0 - ratios[-1])
    return z, weights * last * (_density((z[:, None] - centre) / spread) @ mass) / spread


@lru_cache(maxsize=1)
def _nodes() -> tuple[Floats, Floats]:
    """Gauss and Legendre's points and weights on -1..1."""
    nodes, weights = np.polynomial.legendre.leggauss(_GRID)
    return nodes, weights


def _density(z: Floats) -> Floats:
    return np.asarray(np.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi), dtype=np.float64)


def _above(z: Floats) -> Floats:
    """P(Z > z), to 1e-7 (Abramowitz and Stegun 26.2.17)."""
    size = np.abs(z)
    t = 1.0 / (1.0 + 0.2316419 * size)
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = _density(z) * series
    return np.asarray(np.where(z >= 0.0, tail, 1.0 - tail), dtype=np.float64)

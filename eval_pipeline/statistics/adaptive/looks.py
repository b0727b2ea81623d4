"""Critical values for a fixed schedule of looks.

A run may stop after each batch, so its interval must hold at all looks at once. The number of looks is fixed beforehand
and each may err with an equal part of the total (linear error spending; Lan and DeMets 1983, "Discrete Sequential
Boundaries for Clinical Trials"). The correlation between looks is known: the sum of the weighted errors of batches
is a martingale, so the errors at two looks correlate by the root of the ratio of their information. The boundary
follows by integrating over the paths that have not crossed it yet (Armitage, McPherson and Rowe 1969). For 4 equal
looks it ends at 2.25 where Bonferroni has 2.50.

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

from eval_pipeline.statistics.adaptive.units import Floats

_GRID: Final = 161
"""Points of the density; a finer one changes critical values by less than 0.001."""
_STEP: Final = 200
"""Ratios of information are rounded down to so many steps, which makes boundaries wider and lets them be kept."""


def critical(confidence: float, look: int, looks: int, information: Sequence[float] = ()) -> float:
    """Critical value of one look, such that the error probability of all looks together is at most 1 - confidence.

    Args:
        confidence: Above 0 and below 1.
        look: From 1.
        looks: Number of looks of the schedule.
        information: Information of each look up to this one, ascending, on any scale. Without it, nothing is assumed
            about the correlation of looks (Bonferroni).

    Raises:
        ValueError: If confidence is not between 0 and 1, look not from 1 to looks, or information not ascending.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")
    if not 1 <= look <= looks:
        raise ValueError(f"look must be from 1 to {looks}, got {look}")
    part = (1.0 - confidence) / looks
    if len(information) != look:
        return _normal(part)
    ratios = [before / after for before, after in itertools.pairwise(information)]
    if not all(0.0 <= ratio <= 1.0 for ratio in ratios):
        raise ValueError("information must grow from look to look")
    return _boundary(part, tuple(min(math.floor(r * _STEP) / _STEP, 1.0 - 1.0 / _STEP) for r in ratios))[0]


def _normal(alpha: float) -> float:
    return NormalDist().inv_cdf(1.0 - alpha / 2.0)


@lru_cache(maxsize=1 << 13)
def _boundary(part: float, ratios: tuple[float, ...]) -> tuple[float, Floats, Floats]:
    """Critical value of the last look, with points and weights of the paths that stay within it, in standard errors."""
    nodes, weights = _nodes()
    if not ratios:
        last = _normal(part)
        z = nodes * last
        return last, z, weights * last * np.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi)
    _, before, mass = _boundary(part, ratios[:-1])
    # Z = sqrt(r) Z_before + sqrt(1 - r) noise
    centre, spread = before * math.sqrt(ratios[-1]), math.sqrt(1.0 - ratios[-1])
    low, high = 0.0, _normal(part)
    for _ in range(30):
        middle = (low + high) / 2.0
        crossed = float(mass @ (_above((middle - centre) / spread) + _above((middle + centre) / spread)))
        low, high = (middle, high) if crossed > part else (low, middle)
    z = nodes * high
    kernel = np.exp(-(((z[:, None] - centre) / spread) ** 2) / 2.0) / (spread * math.sqrt(2.0 * math.pi))
    return high, z, weights * high * (kernel @ mass)


@lru_cache(maxsize=1)
def _nodes() -> tuple[Floats, Floats]:
    """Gauss and Legendre's points and weights on -1..1."""
    nodes, weights = np.polynomial.legendre.leggauss(_GRID)
    return nodes, weights


def _above(z: Floats) -> Floats:
    """P(Z > z), to 1e-7 (Abramowitz and Stegun 26.2.17)."""
    size = np.abs(z)
    t = 1.0 / (1.0 + 0.2316419 * size)
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = np.exp(-size * size / 2.0) / math.sqrt(2.0 * math.pi) * series
    return np.asarray(np.where(z >= 0.0, tail, 1.0 - tail), dtype=np.float64)

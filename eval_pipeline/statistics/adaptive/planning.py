"""Predicts how many turns a run until a given precision will ask."""

from __future__ import annotations

import itertools
from typing import Final

from eval_pipeline.statistics.adaptive.engine import Engine
from eval_pipeline.statistics.adaptive.factors import Factors
from eval_pipeline.statistics.adaptive.looks import critical, student
from eval_pipeline.statistics.adaptive.sampler import prior
from eval_pipeline.statistics.adaptive.units import SuiteUnits

BATCHES: Final = 8
"""Batches that a plan reckons with: more learn little more."""


def expected_turns(
    units: SuiteUnits, factors: Factors | None, half_width: float, confidence: float = 0.95, looks: int = 1
) -> int:
    """Number of turns after which the interval is expected to be narrow enough, for models like the earlier ones.

    Args:
        units: The suite.
        factors: From `fit_factors`.
        half_width: Wanted half width, as a share (0.02 for two points).
        confidence: Confidence of the interval.
        looks: Number of looks of the schedule, as for `Sampler.estimate`.

    Returns:
        Number of turns; that of the whole suite if fewer do not suffice.

    Raises:
        ValueError: If the half width is not above 0 and below 1.
    """
    if not 0.0 < half_width < 1.0:
        raise ValueError(f"the half width must be above 0 and below 1, got {half_width}")
    engine = Engine(units, *prior(units, factors), seed=0)
    boundary = critical(confidence, looks, looks, range(1, looks + 1))
    low, high = 0, len(units.ids)
    while high - low > 1:
        middle = (low + high) // 2
        wanted = (half_width / student(boundary, middle)) ** 2
        low, high = (low, middle) if _variance(engine, middle) <= wanted else (middle, high)
    return round(high * units.turns / len(units.ids))


def _variance(engine: Engine, n: int) -> float:
    """Expected variance after ``n`` units in batches of equal size."""
    batches = min(BATCHES, n)
    ends = [round(n * b / batches) for b in range(batches + 1)]
    precision = 0.0
    for start, end in itertools.pairwise(ends):
        variance = engine.anticipated(start, end - start)
        if variance <= 0.0:
            return 0.0
        precision += 1.0 / variance
    return 1.0 / precision

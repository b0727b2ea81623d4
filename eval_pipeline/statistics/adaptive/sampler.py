"""Draws units batch by batch and estimates the share of right turns of the whole suite."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eval_pipeline.statistics.adaptive.engine import Engine, UnitBatch
from eval_pipeline.statistics.adaptive.factors import Factors
from eval_pipeline.statistics.adaptive.looks import critical, student
from eval_pipeline.statistics.adaptive.units import DrawSettings, Floats, SuiteUnits

__all__ = ["SampledShare", "Sampler", "UnitBatch"]


@dataclass(frozen=True)
class SampledShare:
    """An estimate of the share of right turns of the whole suite.

    Attributes:
        value: Unbiased for batch sizes that were fixed beforehand.
        low: Lower end of the interval.
        high: Upper end.
        turns: Turns asked.
        units: Units asked.
        effective: Turns that a uniform sample of whole units would need for this width.
        se: Standard error behind the interval; 0 once all is asked.
    """

    value: float
    low: float
    high: float
    turns: int
    units: int
    effective: float
    se: float


class Sampler:
    """Chooses which units to ask next; deterministic by its seed.

    Its state depends only on units, factors, seed and the observed batches: a new sampler that observes the same
    batches continues in the same way.
    """

    def __init__(
        self, units: SuiteUnits, factors: Factors | None, *, seed: int, uniform: float = DrawSettings.uniform
    ) -> None:
        """Creates a sampler that has asked nothing yet.

        Args:
            units: The suite.
            factors: From `fit_factors`; with None, turns are drawn uniformly per unit of cost, and only the share of
                right turns is learned.
            seed: Random seed of all draws.
            uniform: As in `DrawSettings`. With 1 the same units are drawn whatever the outcomes, so that several models
                can be asked the same; the factors then only predict.

        Raises:
            ValueError: If the factors are for another number of turns.
        """
        self._engine = Engine(units, *prior(units, factors), seed=seed, uniform=uniform)

    @property
    def left(self) -> int:
        """Number of units not asked yet."""
        return self._engine.left

    def draw(self, n: int) -> UnitBatch:
        """Draws units among those not asked yet; the same ones if called again before `observe`.

        Args:
            n: Number of units; all that are left if there are fewer.

        Raises:
            ValueError: If ``n`` is below 1 or nothing is left.
        """
        return self._engine.draw(n)

    def observe(self, batch: UnitBatch, outcomes: Sequence[Floats]) -> None:
        """Takes the outcomes of a drawn batch.

        Args:
            batch: As `draw` returned it.
            outcomes: Per unit of the batch, 1 or 0 for each of its turns; an unanswered turn is wrong.

        Raises:
            ValueError: If the batch is not one that this sampler would draw now, or outcomes do not fit.
        """
        self._engine.observe(batch, outcomes)

    def estimate(self, confidence: float = 0.95, look: int = 1, looks: int = 1) -> SampledShare:
        """Estimates the share of right turns.

        Args:
            confidence: Probability that the intervals of all looks contain the true value, by normal approximation.
            look: Number of this look, from 1.
            looks: Number of looks of the fixed schedule; 1 is for batch sizes fixed beforehand. With a look after each
                batch the correlation of looks is used, which makes intervals narrower (`looks.critical`).

        Returns:
            The estimate, exact once everything is asked.

        Raises:
            ValueError: If nothing is observed yet, or look and looks do not fit.
        """
        engine = self._engine
        value, variance = engine.result()
        se = math.sqrt(variance)
        margin = student(critical(confidence, look, looks, engine.information(look)), engine.freedom()) * se
        floor, ceiling = engine.bounds()
        low, high = max(value - margin, floor), min(value + margin, ceiling)
        inside = min(max(value, floor), ceiling)
        return SampledShare(
            value, min(low, inside), max(high, inside), engine.turns, engine.asked_units, engine.effective(variance), se
        )


def prior(units: SuiteUnits, factors: Factors | None) -> tuple[Floats, Floats, Floats]:
    """Design, mean and covariance of the coefficients; without factors, only the log odds of a right turn.

    Raises:
        ValueError: If the factors are for another number of turns.
    """
    if factors is None:
        return np.ones((units.turns, 1)), np.zeros(1), np.full((1, 1), 2.25)
    if len(factors.design) != units.turns:
        raise ValueError(f"the factors are of {len(factors.design)} turns, the suite has {units.turns}")
    return factors.design, factors.mean, factors.covariance

"""Compares model B, which is asked turn by turn, with model A, whose outcomes are all known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from eval_pipeline.statistics.adaptive.engine import Engine, UnitBatch
from eval_pipeline.statistics.adaptive.factors import Factors
from eval_pipeline.statistics.adaptive.looks import critical, student
from eval_pipeline.statistics.adaptive.sampler import SampledShare, prior
from eval_pipeline.statistics.adaptive.units import Floats, SuiteUnits

_LIKENESS: Final = 2.0
"""Expected effect of A's outcome on B's, in log odds to either side, with a standard deviation of 1.5."""
_FREEDOM: Final = 2.25


class DifferenceSampler:
    """Like `Sampler`, but for the difference B - A of the shares of right turns.

    A's outcomes, together with the history, predict B's. So turns on which the two may differ are asked first, and
    where the two are similar, little remains to be corrected. The same method serves a nightly run on part of the
    suite, with the last full evaluation as A (a control variate).
    """

    def __init__(self, units: SuiteUnits, factors: Factors | None, baseline: Floats, *, seed: int) -> None:
        """Creates a comparison that has asked nothing yet.

        Args:
            units: The suite.
            factors: From `fit_factors` with the settings `EARLIER`, or None.
            baseline: Shape (turns,), A's outcomes, 1 or 0.
            seed: Random seed of all draws.

        Raises:
            ValueError: If the factors or the baseline do not fit the suite.
        """
        known = np.asarray(baseline, dtype=np.float64)
        if known.shape != (units.turns,) or not ((known == 0.0) | (known == 1.0)).all():
            raise ValueError(f"the baseline needs {units.turns} outcomes of 0 or 1")
        design, mean, covariance = prior(units, factors)
        p = len(mean)
        wider = np.zeros((p + 1, p + 1))
        wider[:p, :p], wider[p, p] = covariance, _FREEDOM
        self._engine = Engine(
            units, np.column_stack([design, 2.0 * known - 1.0]), np.r_[mean, _LIKENESS], wider, seed=seed, known=known
        )

    @property
    def left(self) -> int:
        """Number of units not asked yet."""
        return self._engine.left

    def draw(self, n: int) -> UnitBatch:
        """See `Sampler.draw`."""
        return self._engine.draw(n)

    def observe(self, batch: UnitBatch, outcomes: Sequence[Floats]) -> None:
        """See `Sampler.observe`; outcomes are B's."""
        self._engine.observe(batch, outcomes)

    def estimate(
        self,
        confidence: float = 0.95,
        look: int = 1,
        looks: int = 1,
        *,
        beyond: bool = True,
        spent: Sequence[float] = (),
    ) -> SampledShare:
        """Estimates the difference B - A.

        Args:
            confidence: Probability that the intervals of all looks contain the true value.
            look: Number of this look, from 1.
            looks: Number of looks of the fixed schedule.
            beyond: If true, the interval treats the suite as a sample of possible questions, as in a comparison of full
                evaluations: it does not exclude 0 merely because one of two equal models had better luck with these
                turns. If false, the difference on exactly this suite is estimated, which is known exactly once all
                turns are asked.
            spent: From `looks.spending`, the share of the error spent by each look; by default equal parts.

        Returns:
            The difference; its interval holds for all looks together.

        Raises:
            ValueError: If nothing is observed yet, or look and looks do not fit.
        """
        engine = self._engine
        value, variance = engine.result()
        total, freedom = variance, engine.freedom() if variance else math.inf
        if beyond:  # a sum of independent estimates (Satterthwaite 1946)
            spread = engine.spread()
            total = variance + spread.variance
            parts = variance**2 / freedom + spread.variance**2 / spread.freedom
            freedom = total**2 / parts if parts else math.inf
        se = math.sqrt(total)
        information = engine.precisions(look) if beyond else engine.information(look)
        margin = student(critical(confidence, look, looks, information, spent), freedom) * se
        difference = value - engine.known_share
        floor, ceiling = (-1.0, 1.0) if beyond else tuple(end - engine.known_share for end in engine.bounds())
        inside = min(max(difference, floor), ceiling)
        low, high = max(difference - margin, floor), min(difference + margin, ceiling)
        turns, units = engine.turns, engine.asked_units
        return SampledShare(
            difference, min(low, inside), max(high, inside), turns, units, engine.effective(variance), se
        )

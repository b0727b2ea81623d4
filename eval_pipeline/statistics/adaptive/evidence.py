"""What the batches of a draw have shown: estimate, variance, and how well the variance is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from eval_pipeline.statistics.adaptive.units import Floats

EXPECTED: Final = 2.0
"""Number of residuals of the expected size that the dispersion starts from."""


@dataclass(frozen=True)
class BatchContribution:
    """What a batch contributed.

    Attributes:
        weight: Not normalised.
        value: Its estimate.
        variance: Variance of its estimate that the model expects.
        noise: Variance of the observed squares that the model expects.
        observed: Sum of squared residuals, weighted up.
        expected: The same sum as the model expects it.
        drawn: Number of units.
    """

    weight: float
    value: float
    variance: float
    noise: float
    observed: float
    expected: float
    drawn: int


@dataclass
class BatchEvidence:
    """All batches so far."""

    batches: list[BatchContribution] = field(default_factory=list)

    def result(self) -> tuple[float, float]:
        """Estimate and its variance.

        Raises:
            ValueError: If nothing is observed yet.
        """
        if not self.batches:
            raise ValueError("nothing is observed yet")
        weights = self._each("weight")
        weights = weights / weights.sum()
        variance = float(weights**2 @ self._each("variance"))
        return float(weights @ self._each("value")), variance * self.dispersion()

    def dispersion(self) -> float:
        """Observed over expected squared residuals, shrunk towards 1."""
        weights = self._each("weight") ** 2
        observed, expected = float(weights @ self._each("observed")), float(weights @ self._each("expected"))
        if expected <= 0.0:
            return 1.0
        share = EXPECTED * expected / self.drawn
        return (observed + share) / (expected + share)

    def freedom(self) -> float:
        """Degrees of freedom of the variance of `result`: those of a chi-square as noisy (Satterthwaite 1946).

        The squares of a turn that is almost surely right or wrong are noisy: their variance is V (1 - 4 V), that of a
        normal residual 2 V^2. So few degrees are left where nearly all turns are right.
        """
        weights = self._each("weight") ** 2
        variance, noise = float(weights @ self._each("variance")), float(weights**2 @ self._each("noise"))
        return EXPECTED + (min(2.0 * variance**2 / noise, self.drawn) if noise > 0.0 else self.drawn)

    def information(self) -> Floats:
        """Variances of the summed weighted errors up to each batch."""
        return np.cumsum(self._each("weight") ** 2 * self._each("variance"))

    def variances(self) -> Floats:
        """Variance of the estimate after each batch, as the model expects it."""
        return np.asarray(self.information() / np.cumsum(self._each("weight")) ** 2)

    @property
    def drawn(self) -> int:
        """Number of units."""
        return sum(seen.drawn for seen in self.batches)

    def _each(self, name: str) -> Floats:
        return np.array([getattr(seen, name) for seen in self.batches], dtype=np.float64)

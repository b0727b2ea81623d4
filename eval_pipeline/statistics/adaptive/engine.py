"""The common part of `Sampler` and `Comparison`: predict, draw where uncertain, correct by inverse probabilities.

Batch b draws units i among those not asked yet, with probabilities q_i. With the outcomes t_i and predictions m_i made
before the batch, T_b = (sum of asked outcomes + sum of m_i of those left + sum over the drawn of (t_i - m_i) / q_i) /
turns is unbiased given all before, whatever the model: T_b - truth are martingale differences (Zrnic and Candès 2024;
Wu, Nair and Candès 2601.20251). The estimate is the sum of w_b T_b. The weights come from the variances that the prior
expects, not from outcomes; thus they are fixed by the sizes of the batches, and the estimate is exactly unbiased for
sizes that were fixed beforehand.

The variance is the model's, sum over those left of (1 - q_i) / q_i V_i with V_i = Var(t_i), times the dispersion: the
ratio of observed to expected squared residuals, both weighted up, shrunk towards 1 by a few residuals as expected. A
dispersion far from 1 shows that the model does not fit; it widens the interval and moves the draw towards uniform.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from eval_pipeline.statistics.adaptive.evidence import BatchContribution, BatchEvidence
from eval_pipeline.statistics.adaptive.factors import expit
from eval_pipeline.statistics.adaptive.spread import (
    FEWEST_CLUSTERS,
    UNKNOWN,
    Spread,
    inclusion_probabilities,
    suite_spread,
    systematic,
)
from eval_pipeline.statistics.adaptive.units import EARLIER, Floats, Integers, SuiteUnits

_NOISE: Final = 0.3
"""Variance of the log odds of a turn that the factors do not explain."""
_WITHIN: Final = 0.2
"""Assumed correlation of two residuals of one unit; wrong, it costs precision and not validity."""
_SURE: Final = 0.01
"""No outcome is held for more certain than this."""
_THETAS: Final = 64
_MANY_CLUSTERS: Final = 30
"""With fewer, comparisons of equal models err in more than 5% if the correlation of looks is used."""
_LEAST: Final = 1e-300
"""Taken for a variance of 0, where all is asked and all differ alike."""


@dataclass(frozen=True)
class UnitBatch:
    """Units drawn together.

    Attributes:
        units: Positions of the drawn units, ascending.
        probabilities: Their probabilities of being drawn in this batch, above 0 and at most 1.
    """

    units: Integers
    probabilities: Floats


class Engine:
    """Draws units and estimates shares of the turns of the suite, by the method described at the top of the module."""

    def __init__(
        self,
        units: SuiteUnits,
        design: Floats,
        mean: Floats,
        covariance: Floats,
        *,
        seed: int,
        known: Floats | None = None,
        uniform: float = EARLIER.uniform,
    ) -> None:
        """Takes the suite, shape (turns, p) of regressors, and the normal prior of their coefficients.

        ``known`` are the outcomes, shape (turns,), from which differences are of interest. ``uniform`` is
        that of `DrawSettings`.
        """
        self._known = units.sums(np.zeros(units.turns) if known is None else known)
        self._suite, self._design, self._mean = units, design, mean
        self._precision, self._seed, self._uniform = np.linalg.inv(covariance), seed, uniform
        self._theta, self._covariance = mean.copy(), covariance
        self._unit_of = np.repeat(np.arange(len(units.ids)), units.sizes)
        self._damping = 1.0 / (1.0 + (units.sizes - 1.0) * _WITHIN)
        self._asked = np.zeros(len(units.ids), dtype=bool)
        self._turn_outcomes = np.full(units.turns, np.nan)
        self._seen = BatchEvidence()
        self._average, self._average_square, self._information = self._anticipate(covariance)
        self._predict()

    # What is asked

    @property
    def asked_units(self) -> int:
        """Number of units asked so far."""
        return int(self._asked.sum())

    @property
    def left(self) -> int:
        """Number of units not asked yet."""
        return len(self._asked) - self.asked_units

    @property
    def turns(self) -> int:
        """Number of turns asked so far."""
        return int(self._suite.sizes[self._asked].sum())

    def draw(self, n: int) -> UnitBatch:
        """See `Sampler.draw`."""
        if n < 1:
            raise ValueError(f"a batch has at least one unit, got {n}")
        if not self.left:
            raise ValueError("all units are asked")
        free, chances = self._chances(min(n, self.left))
        rng = np.random.default_rng([self._seed, len(self._seen.batches)])
        found = systematic(chances, rng.permutation(len(free)), float(rng.random()))
        return UnitBatch(free[found], chances[found])

    def observe(self, batch: UnitBatch, outcomes: Sequence[Floats]) -> None:
        """See `Sampler.observe`."""
        answered = self._checked(batch, outcomes)
        free, chances = self._chances(len(batch.units))
        places = np.searchsorted(free, batch.units)
        if not np.allclose(chances[places], batch.probabilities, rtol=1e-6, atol=1e-9):
            raise ValueError("the batch was drawn with other probabilities: units, history, seed or batches differ")
        drawn, q, turns = batch.units, chances[places], self._suite.turns
        sizes = self._suite.sizes[drawn]
        ends = np.cumsum(sizes)
        sums = np.add.reduceat(answered, ends - sizes)
        known = np.nansum(self._turn_outcomes)
        residual = sums - self._expected[drawn]
        value = (known + self._expected[free].sum() + (residual / q).sum()) / turns
        variance = float(((1.0 - chances) / chances * self._variances[free]).sum()) / turns**2
        noise = float(((1.0 - chances) ** 2 / chances**3 * self._noise[free]).sum()) / turns**4
        lost = (1.0 - q) / q**2 / turns**2
        self._seen.batches.append(
            BatchContribution(
                self._weight(len(drawn)),
                float(value),
                variance,
                noise,
                float((lost * residual**2).sum()),
                float((lost * self._variances[drawn]).sum()),
                len(drawn),
            )
        )
        self._asked[drawn] = True
        # Positions of the turns of the drawn units, unit by unit.
        self._turn_outcomes[np.arange(ends[-1]) + np.repeat(self._suite.starts[drawn] - ends + sizes, sizes)] = answered
        self._learn()
        self._predict()

    # What is known

    def result(self) -> tuple[float, float]:
        """See `Evidence.result`; exact once all is asked."""
        found = self._seen.result()
        return found if self.left else (float(self._turn_outcomes.mean()), 0.0)

    def information(self, look: int) -> tuple[float, ...]:
        """See `Evidence.information`; empty if looks were not taken after each batch."""
        known = look == len(self._seen.batches) and self.left
        return tuple(self._seen.information().tolist()) if known else ()

    def freedom(self) -> float:
        """See `Evidence.freedom`."""
        return self._seen.freedom()

    def bounds(self) -> tuple[float, float]:
        """Least and largest share of right turns that are still possible given the outcomes so far."""
        right = float(np.nansum(self._turn_outcomes))
        return right / self._suite.turns, (right + self._suite.turns - self.turns) / self._suite.turns

    def effective(self, variance: float) -> float:
        """Number of turns that a uniform sample of whole units would need for this variance.

        A uniform sample of m of U units with the deviations e_i = t_i - size_i * share has the variance
        U^2 / m (1 - m / U) * s^2 / turns^2, s^2 = sum e_i^2 / (U - 1) (Cochran 1977, 2.9); it is solved for m. The
        deviations of units not asked are taken from the predictions.
        """
        if not self.left or len(self._asked) == 1:
            return float(self.turns)
        spread = self._spread_over(np.arange(len(self._asked))).variance
        return self._suite.turns * spread / (spread + variance)

    def spread(self) -> Spread:
        """Variance of the share (or difference) of a suite, regarded as a sample of clusters of such units.

        Too few clusters, which may differ alike by chance, say nothing about it.
        """
        few = self._suite.codes.max() + 1 < FEWEST_CLUSTERS
        return UNKNOWN if few else self._spread_over(self._suite.codes)

    def _spread_over(self, clusters: Integers) -> Spread:
        mean = (np.where(self._asked, self._sums, self._expected) - self._known).sum() / self._suite.turns
        centre = self._known + self._suite.sizes * mean
        found = np.where(self._asked, self._sums, self._expected)
        return suite_spread(
            found - centre, found - self._expected, self._variances * self._seen.dispersion(), self._asked, clusters,
            self._suite.turns,
        )  # fmt: skip

    @property
    def known_share(self) -> float:
        """Share of right turns of the known outcomes."""
        return float(self._known.sum() / self._suite.turns)

    def precisions(self, look: int) -> tuple[float, ...]:
        """Inverse variances after each batch, with the suite's own.

        Empty if looks were not taken after each batch, or clusters are so few that the variances say little about how
        looks correlate.
        """
        if look != len(self._seen.batches) or self._suite.codes.max() + 1 < _MANY_CLUSTERS:
            return ()
        done = self._seen.variances()
        if not self.left:
            done[-1] = 0.0
        total = np.maximum(done * self._seen.dispersion() + self.spread().variance, _LEAST)
        return tuple(np.maximum.accumulate(1.0 / total).tolist())

    # How it is done

    def _chances(self, n: int) -> tuple[Integers, Floats]:
        """Returns the units not asked yet, and the probabilities with which ``n`` of them are drawn.

        A unit is most informative per asked turn if sd(t_i) / sqrt(size_i) is large (Neyman's allocation with costs).
        """
        free = np.flatnonzero(~self._asked)
        if self._uniform >= 1.0:
            return free, np.full(len(free), n / len(free))
        scores = np.sqrt(self._variances[free] / self._suite.sizes[free])
        uniform = min(max(self._uniform, 1.0 - 1.0 / self._seen.dispersion()), 1.0)
        scores = (1.0 - uniform) * scores / scores.mean() + uniform
        return free, inclusion_probabilities(scores, n)

    def _predict(self) -> None:
        """Expected outcome and variance of each unit, given all outcomes so far.

        The integral of the logistic over a normal is approximated as by MacKay (1992), "The Evidence Framework Applied
        to Classification Networks".
        """
        spread = np.einsum("ij,jk,ik->i", self._design, self._covariance, self._design) + _NOISE
        p = np.clip(expit(self._design @ self._theta / np.sqrt(1.0 + np.pi / 8.0 * spread)), _SURE, 1.0 - _SURE)
        self._sums = self._suite.sums(np.nan_to_num(self._turn_outcomes))
        self._expected = self._suite.sums(p)
        single = p * (1.0 - p)
        self._variances = self._unit_variances(single)
        # Fourth cumulants of Bernoulli variables, V (1 - 6 V), scaled like the variance of their sum.
        alike = (self._variances / self._suite.sums(single)) ** 2
        self._noise = alike * self._suite.sums(single * (1.0 - 6.0 * single)) + 2.0 * self._variances**2

    def _unit_variances(self, single: Floats) -> Floats:
        """Variances of sums over units, from the variances of single turns, which have the correlation `_WITHIN`."""
        alone = self._suite.sums(single)
        return alone + _WITHIN * (self._suite.sums(np.sqrt(single)) ** 2 - alone)

    def _learn(self) -> None:
        """Posterior mode of the coefficients and its normal approximation, by Newton's method.

        Turns of one unit are not independent, so each counts less.
        """
        here = ~np.isnan(self._turn_outcomes)
        x, y = self._design[here], self._turn_outcomes[here]
        counts = self._damping[self._unit_of[here]]
        theta = self._theta
        for _ in range(8):
            p = expit(x @ theta)
            gradient = x.T @ (counts * (y - p)) - self._precision @ (theta - self._mean)
            hessian = (x * (counts * p * (1.0 - p))[:, None]).T @ x + self._precision
            step = np.clip(np.linalg.solve(hessian, gradient), -1.0, 1.0)
            theta = theta + step
            if np.abs(step).max() < 1e-4:
                break
        self._theta, self._covariance = theta, np.linalg.inv(hessian)

    def _anticipate(self, covariance: Floats) -> tuple[Floats, Floats, Floats]:
        """What the prior expects: w = p (1 - p) and w^2 of each turn, and the information of the whole suite.

        These are means over coefficients drawn with a separate seed, which does not depend on observations.
        """
        rng = np.random.default_rng(0)
        thetas = rng.multivariate_normal(self._mean, covariance, _THETAS, method="cholesky")
        noise = rng.normal(size=(_THETAS, 1)) * np.sqrt(_NOISE)
        p = expit(thetas @ self._design.T + noise)
        w = p * (1.0 - p)
        counts = (w.mean(0) * self._damping[self._unit_of])[:, None]
        return w.mean(0), (w**2).mean(0), (self._design * counts).T @ self._design

    def anticipated(self, asked: int, n: int) -> float:
        """Variance, expected from the prior, of the estimate of a batch of ``n`` units after ``asked`` units."""
        share = asked / len(self._asked)
        covariance = np.linalg.inv(self._precision + share * self._information)
        spread = np.einsum("ij,jk,ik->i", self._design, covariance, self._design)
        variances = self._unit_variances(np.minimum(self._average + self._average_square * spread, 0.25))
        left = len(self._asked) - asked
        return float(np.sqrt(variances).mean() ** 2 * left * (left - n) / n / self._suite.turns**2)

    def _weight(self, n: int) -> float:
        """Weight of the batch observed now, fixed by batch sizes alone; that of an exact last batch is never used."""
        return 1.0 if n == self.left else 1.0 / self.anticipated(self.asked_units, n)

    def _checked(self, batch: UnitBatch, outcomes: Sequence[Floats]) -> Floats:
        """Returns the outcomes of a batch, turn by turn, after checking that it fits the units asked so far."""
        units = np.asarray(batch.units)
        if len(units) == 0 or len(np.unique(units)) != len(units) or len(batch.probabilities) != len(units):
            raise ValueError("a batch has at least one unit, each once, each with its probability")
        if units.min() < 0 or units.max() >= len(self._asked) or self._asked[units].any():
            raise ValueError("the batch holds units that are asked already or not of this suite")
        if len(outcomes) != len(units):
            raise ValueError(f"the batch has {len(units)} units, outcomes are given of {len(outcomes)}")
        given = [np.asarray(outcome, dtype=np.float64) for outcome in outcomes]
        sizes = self._suite.sizes[units].tolist()
        flat = np.concatenate([values.ravel() for values in given])
        if [values.shape for values in given] != [(size,) for size in sizes] or not _are_verdicts(flat):
            pairs = zip(given, sizes, strict=True)
            bad = next(i for i, (o, size) in enumerate(pairs) if o.shape != (size,) or not _are_verdicts(o))
            raise ValueError(f"unit {self._suite.ids[units[bad]]!r} needs {sizes[bad]} outcomes of 0 or 1")
        return flat


def _are_verdicts(values: Floats) -> bool:
    return bool(((values == 0.0) | (values == 1.0)).all())

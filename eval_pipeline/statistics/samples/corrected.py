"""Shares of a population by people's ratings of a stratified sample, with the help of predictions for all members.

The predictions f of a metric or judge are known for the whole population, people's ratings y for the sample. With F,
the mean of all predictions, and means of the sample weighted by N_h / n_h, the share is estimated by

    mean(y) + lambda * (F - mean(f)),

which is unbiased for any fixed lambda if the denominators are known: the difference estimator (Cassel, Särndal and
Wretman 1976), and prediction-powered inference for strata (Fisch et al. 2024, "Stratified Prediction-Powered Inference
for Hybrid Language Model Evaluation", arXiv 2406.04291). As in PPI++ (Angelopoulos, Duchi and Zrnic 2023), lambda is
chosen for the least variance and cut to 0..1, so that predictions without value do no harm. The mean of y is over the
members that people could rate, that of f over all, or over those of a group. The variance is the jackknife over strata
of `sampling`, in which lambda is chosen again without each member.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eval_pipeline.statistics._special import t_critical
from eval_pipeline.statistics.intervals import wilson_interval
from eval_pipeline.statistics.samples.sampling import (
    LONE_MEMBER,
    NO_SPREAD,
    DrawnEstimate,
    Strata,
    missing_reason,
    sampled_groups,
    variance_of_those_alike,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class _Sample:
    """Ratings and predictions of the sample, 0 outside their domains, and the mean of all predictions."""

    ratings: Floats
    rated: Floats
    predictions: Floats
    group: Floats
    strata: Strata
    mean: float
    weight: float | None

    def share(self, weights: Floats) -> float | None:
        """The estimate if each member has a weight; those left out have 0."""
        rated, group = float(weights @ self.rated), float(weights @ self.group)
        if rated <= 0.0 or group <= 0.0:
            return None
        plain, predicted = float(weights @ self.ratings) / rated, float(weights @ self.predictions) / group
        if self.weight is not None:
            return plain + self.weight * (self.mean - predicted)
        z = (self.ratings - plain * self.rated) / rated
        f = (self.predictions - predicted * self.group) / group
        return plain + self._trust(weights, z, f) * (self.mean - predicted)

    def _trust(self, weights: Floats, z: Floats, f: Floats) -> float:
        """Lambda: the slope of the errors of mean(y) on those of mean(f) within strata, cut to 0..1."""
        codes, seen = self.strata.codes, self.strata.seen
        # Weight of a squared deviation in the variance N_h (N_h - n_h) / n_h s_h^2 of a stratum's total.
        each = self.strata.sizes * (self.strata.sizes - seen) / np.maximum(seen * (seen - 1.0), 1.0)
        counts = np.where(weights > 0.0, each[codes], 0.0)
        sums = np.maximum(np.bincount(codes, counts, len(seen)), 1e-300)
        z, g = (v - (np.bincount(codes, counts * v, len(seen)) / sums)[codes] for v in (z, f))
        square = float(counts @ g**2)
        # Rounding must not look like a difference between equal predictions.
        some = square > 1e-12 * float(counts @ f**2) and square > 0.0
        return min(max(float(counts @ (z * g)) / square, 0.0), 1.0) if some else 0.0

    def jackknife(self) -> tuple[float, int] | str:
        """Variance of the share and its degrees of freedom, or why there is none."""
        variance, freedom, base = 0.0, 0, self.strata.weights
        rows = np.column_stack([self.strata.codes, self.ratings, self.rated, self.predictions, self.group])
        for members, drawn in sampled_groups(self.strata):
            count = int(members.sum())
            if count < 2:
                return LONE_MEMBER
            _, first, inverse = np.unique(rows[members], axis=0, return_index=True, return_inverse=True)
            found = []
            for one in np.flatnonzero(members)[first]:
                weights = np.where(members, base * count / (count - 1), base)
                weights[one] = 0.0
                found.append(self.share(weights))
            if any(value is None for value in found):
                return LONE_MEMBER
            each = np.array(found, dtype=np.float64)[inverse.ravel()]
            variance += (1.0 - drawn) * (count - 1) / count * float(((each - each.mean()) ** 2).sum())
            freedom += count - 1
        return variance, max(freedom - (self.weight is None), 1)


def drawn_corrected_rate(
    values: ArrayLike,
    predictions: ArrayLike,
    domain: ArrayLike,
    strata: Strata,
    mean: float,
    *,
    group: ArrayLike | None = None,
    weight: float | None = None,
) -> DrawnEstimate:
    """Estimates the share of members that people would rate 1, of those that they could rate.

    The interval is like that of `drawn_rate`: Wilson's with the effective number of members, and some variance where
    ratings and predictions of a stratum differ nowhere.

    Args:
        values: Shape (n,), people's rating of each sampled member, 1 or 0; ignored outside the domain.
        predictions: Shape (n,), the prediction for each sampled member, in 0..1.
        domain: Shape (n,), whether people could rate the member.
        strata: The strata of the sample.
        mean: Mean of the predictions for all members of the population (or of the group), sampled or not.
        group: Shape (n,), the members that the share is about; None for all.
        weight: Lambda; None chooses the best one.

    Returns:
        The estimate; ``n`` counts the members that people could rate.
    """
    f = np.asarray(predictions, dtype=np.float64)
    members = np.ones(len(f), dtype=bool) if group is None else np.asarray(group, dtype=bool)
    inside = np.asarray(domain, dtype=bool) & members
    n = int(inside.sum())
    if missing := missing_reason(n, strata):
        return DrawnEstimate(n, None, None, None, None, None, missing)
    y = np.asarray(values, np.float64)
    sample = _Sample(
        y * inside, inside.astype(np.float64), f * members, members.astype(np.float64), strata, mean, weight
    )
    value = sample.share(strata.weights)
    assert value is not None
    population = float(strata.weights[inside].sum())
    rate = min(max(value, 0.0), 1.0)
    spread = sample.jackknife()
    if isinstance(spread, str):
        return DrawnEstimate(n, population, rate, None, None, None, spread)
    variance = spread[0] + variance_of_those_alike((y - f) * inside, inside, strata)
    if variance <= 0.0:  # every member was rated
        return DrawnEstimate(n, population, rate, 0.0, rate, rate, None)
    least = 1.0 / (n + 2.0)
    inner = min(max(rate, least), 1.0 - least)
    low, high = wilson_interval(rate, max(inner * (1.0 - inner) / variance, 1.0), t_critical(spread[1]))
    return DrawnEstimate(n, population, rate, math.sqrt(variance), low, high, None)


def drawn_bias(predictions: ArrayLike, values: ArrayLike, domain: ArrayLike, strata: Strata) -> DrawnEstimate:
    """Estimates the mean of prediction minus rating over a domain: above 0 where the predictions are too favourable.

    Args:
        predictions: Shape (n,), what metric or judge says of each sampled member, 1 or 0.
        values: Shape (n,), what people say.
        domain: Shape (n,), the members of which both are known.
        strata: The strata of the sample.

    Returns:
        The mean, in -1..1, with an interval by t.
    """
    inside = np.asarray(domain, dtype=bool)
    n = int(inside.sum())
    if missing := missing_reason(n, strata):
        return DrawnEstimate(n, None, None, None, None, None, missing)
    errors = (np.asarray(predictions, np.float64) - np.asarray(values, np.float64)) * inside
    rated = inside.astype(np.float64)
    sample = _Sample(errors, rated, np.zeros(len(errors)), rated, strata, 0.0, 0.0)
    value, spread = sample.share(strata.weights), sample.jackknife()
    assert value is not None
    population = float(strata.weights[inside].sum())
    if isinstance(spread, str):
        return DrawnEstimate(n, population, value, None, None, None, spread)
    variance = spread[0] + variance_of_those_alike(errors, inside, strata)
    if n < 2 and (strata.seen < strata.sizes).any():
        return DrawnEstimate(n, population, value, None, None, None, NO_SPREAD)
    se = math.sqrt(variance)
    margin = t_critical(spread[1]) * se
    return DrawnEstimate(n, population, value, se, max(value - margin, -1.0), min(value + margin, 1.0), None)

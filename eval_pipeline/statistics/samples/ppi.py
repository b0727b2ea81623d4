"""Estimates a mean of people's labels from few reviews and the predictions of a metric or judge for all turns (PPI++).

With labels Y_i and predictions f_i of n reviewed turns, and predictions F_j of N turns that were not reviewed,

    estimate = lambda * mean(F) + mean(Y - lambda * f)

is unbiased for any fixed lambda, if the reviewed turns are a uniform draw. Lambda is chosen for the least variance and
cut to 0..1 (Angelopoulos, Duchi and Zrnic 2023, "PPI++: Efficient Prediction-Powered Inference", arXiv 2311.01453; for
lambda = 1: Angelopoulos et al. 2023, "Prediction-powered inference", Science 382). A judge that agrees with nobody gets
lambda = 0, and the estimate is the mean of the labels. In large samples it is never worse than that.

Without clusters, the error is Var(lambda F) / N + Var(Y - lambda f) / n with the normal's critical value, as in the
authors' `ppi-python`. With clusters, each part is the error of a mean over conversations (`intervals`), what reviewed
and other turns of one conversation have in common is counted, and t has the degrees of freedom of the reviewed
conversations.

The pipeline itself corrects by stratified draws (`corrected`), of which this is the case of one stratum. It is public
for notebooks with a uniform draw (docs/adaptive-statistics.md), and ties `corrected` to the authors' code in tests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eval_pipeline.statistics._clusters import as_codes, as_numbers
from eval_pipeline.statistics._special import CONFIDENCE, t_critical

Floats = NDArray[np.float64]

TOO_FEW: Final = "fewer than two conversations are reviewed"


@dataclass(frozen=True, slots=True)
class PredictionPowered:
    """An estimate of the mean that the labels of all turns would have.

    Attributes:
        value: In the unit of the labels.
        se: Its standard error; None if too few conversations are reviewed.
        low: Lower end of the interval; None if ``se`` is.
        high: Upper end; None if ``se`` is.
        weight: Lambda, how far predictions are trusted, in 0..1.
        reviewed: Number of labels.
        predicted: Number of predictions without label.
        reason: Why numbers are missing; None if none is.
    """

    value: float
    se: float | None
    low: float | None
    high: float | None
    weight: float
    reviewed: int
    predicted: int
    reason: str | None


def prediction_powered_mean(
    labels: ArrayLike,
    predictions: ArrayLike,
    unlabelled: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    unlabelled_clusters: ArrayLike | None = None,
    weight: float | None = None,
    confidence: float = CONFIDENCE,
) -> PredictionPowered:
    """Estimates the mean of labels over all turns, reviewed or not.

    Args:
        labels: Shape (n,), people's labels of the reviewed turns.
        predictions: Shape (n,), the predictions of metric or judge for them.
        unlabelled: Shape (N,), its predictions for the turns that nobody reviewed.
        clusters: Shape (n,), whole numbers, the conversations of the reviewed turns; None if turns are independent.
        unlabelled_clusters: Shape (N,), those of the other turns, in the same numbering.
        weight: Lambda; None chooses the best one.
        confidence: Confidence of the interval.

    Returns:
        The estimate; without interval if fewer than two conversations (or turns) are reviewed.

    Raises:
        TypeError: If clusters are not whole numbers.
        ValueError: If shapes do not fit, a value is missing, nothing is labelled or nothing unlabelled, or only one of
            the two kinds of clusters is given.
    """
    y, f, rest = as_numbers(labels, "labels"), as_numbers(predictions, "predictions"), as_numbers(unlabelled)
    if y.shape != f.shape or not len(y) or not len(rest):
        raise ValueError(f"{len(y)} labels, {len(f)} predictions of them and {len(rest)} others are no sample")
    if any(np.isnan(values).any() for values in (y, f, rest)):
        raise ValueError("labels and predictions must not be missing")
    if (clusters is None) != (unlabelled_clusters is None):
        raise ValueError("clusters are needed of the reviewed turns and of the others, or of neither")
    n, others = len(y), len(rest)
    if clusters is None or unlabelled_clusters is None:
        trust = _weight(y, f, rest, n / others) if weight is None else weight
        se = math.sqrt((trust * rest).var() / others + (y - trust * f).var() / n) if n > 1 else None
        critical = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
        return _corrected(y, f, rest, trust, se, critical)
    codes = as_codes(np.concatenate([np.asarray(clusters), np.asarray(unlabelled_clusters)]), n + others)
    if weight is None:
        # By what conversations say: sums of deviations of a conversation are what varies independently.
        weight = _clustered_weight(y, f, rest, codes)
    reviewed = len(np.unique(codes[:n]))
    se = _clustered_error(y - weight * f, weight * rest, codes) if reviewed > 1 else None
    return _corrected(y, f, rest, weight, se, t_critical(max(reviewed - 1, 1), 1.0 - confidence))


def _corrected(
    y: Floats, f: Floats, rest: Floats, weight: float, se: float | None, critical: float
) -> PredictionPowered:
    value = float(weight * rest.mean() + (y - weight * f).mean())
    if se is None:
        return PredictionPowered(value, None, None, None, weight, len(y), len(rest), TOO_FEW)
    return PredictionPowered(value, se, value - critical * se, value + critical * se, weight, len(y), len(rest), None)


def _weight(y: Floats, f: Floats, rest: Floats, ratio: float) -> float:
    """Returns Cov(Y, f) / ((1 + n / N) Var(f)), cut to 0..1; the covariance has divisor n, as in `ppi-python`."""
    variance = float(np.concatenate([f, rest]).var(ddof=1))
    if variance == 0.0:
        return 0.0
    return min(max(float(((y - y.mean()) * (f - f.mean())).mean()) / ((1.0 + ratio) * variance), 0.0), 1.0)


def _by_cluster(labelled: Floats, other: Floats, codes: NDArray[np.int64]) -> Floats:
    """Returns the contribution of each conversation to the error of mean(labelled) + mean(other), shape (clusters,)."""
    parts = np.concatenate([(labelled - labelled.mean()) / len(labelled), (other - other.mean()) / len(other)])
    used = np.bincount(codes) > 0
    return np.asarray(np.bincount(codes, weights=parts)[used], dtype=np.float64)


def _clustered_error(labelled: Floats, other: Floats, codes: NDArray[np.int64]) -> float:
    """Returns the root of C / (C - 1) times the sum of squares, where C is the number of reviewed conversations."""
    c = len(np.unique(codes[: len(labelled)]))
    return math.sqrt(c / (c - 1) * float((_by_cluster(labelled, other, codes) ** 2).sum()))


def _clustered_weight(y: Floats, f: Floats, rest: Floats, codes: NDArray[np.int64]) -> float:
    """Returns the lambda with the least clustered error of a - lambda b over conversations."""
    a = _by_cluster(y, np.zeros_like(rest), codes)
    b = _by_cluster(f, -rest, codes)
    square = float(b @ b)
    return min(max(float(a @ b) / square, 0.0), 1.0) if square > 0.0 else 0.0

"""Agreement of raters beyond chance (Cohen's and Fleiss' kappa)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eval_pipeline.statistics._clusters import ONE_CLUSTER, as_codes
from eval_pipeline.statistics._special import t_critical
from eval_pipeline.statistics.intervals import estimate_mean

NOTHING_RATED: Final = "nothing was rated by both"
NO_VARIETY: Final = "both gave everything the same rating"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Cohen's kappa (1960, "A coefficient of agreement for nominal scales").

    Attributes:
        n: Items rated by both.
        clusters: Independent groups among them.
        observed: Share of items with the same rating, 0..1; None without items.
        kappa: (observed - expected) / (1 - expected), at most 1; None if chance alone would give full agreement.
        se: Its standard error by the jackknife over clusters; None for fewer than two clusters, or if kappa is
            undefined without one of them.
        low: Lower end of the 95% interval; None if ``se`` is.
        high: Upper end of the 95% interval, at most 1; None if ``se`` is.
        reason: Why numbers are missing; None if none is.
    """

    n: int
    clusters: int
    observed: float | None
    kappa: float | None
    se: float | None
    low: float | None
    high: float | None
    reason: str | None


def cohens_kappa(first: ArrayLike, second: ArrayLike, clusters: ArrayLike) -> Agreement:
    """Computes Cohen's kappa of two raters.

    Args:
        first: Shape (N,), the first rater's rating of each item, as integers from 0.
        second: Shape (N,), the second rater's ratings, with the same codes.
        clusters: Shape (N,), any integers; items with equal labels belong to the same cluster.
    """
    one, other = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    if not len(one):
        return Agreement(0, 0, None, None, None, None, None, NOTHING_RATED)
    _, codes = np.unique(as_codes(clusters, len(one)), return_inverse=True)
    size = int(max(one.max(), other.max())) + 1
    count = int(codes.max()) + 1
    # One count table for each cluster, so that leaving a cluster out is a subtraction.
    tables = np.zeros((count, size, size))
    np.add.at(tables, (codes, one, other), 1)
    whole = tables.sum(axis=0)
    observed = float(np.trace(whole) / whole.sum())
    kappa = kappa_of_table(whole)
    if kappa is None:
        return Agreement(len(one), count, observed, None, None, None, None, NO_VARIETY)
    without = [kappa_of_table(whole - table) for table in tables] if count > 1 else []
    known = np.array([value for value in without if value is not None])
    if len(known) < 2 or len(known) < count:
        reason = ONE_CLUSTER if count < 2 else "without one of the clusters there is no kappa"
        return Agreement(len(one), count, observed, kappa, None, None, None, reason)
    se = float(np.sqrt((count - 1) / count * ((known - known.mean()) ** 2).sum()))
    margin = t_critical(count - 1) * se
    return Agreement(len(one), count, observed, kappa, se, max(kappa - margin, -1.0), min(kappa + margin, 1.0), None)


@dataclass(frozen=True, slots=True)
class SelfAgreement:
    """Agreement of a rater with itself when asked the same question several times.

    Attributes:
        n: Items.
        unanimous: Items that got the same rating every time.
        agreement: Probability that two ratings of one item are the same, 0..1; None without items.
        low: Lower end of its clustered 95% interval; None for fewer than two clusters.
        high: Upper end of the same interval.
        kappa: Fleiss' kappa (1971, "Measuring nominal scale agreement among many raters"), at most 1; None if chance
            alone would give full agreement.
        reason: Why numbers are missing; None if none is.
    """

    n: int
    unanimous: int
    agreement: float | None
    low: float | None
    high: float | None
    kappa: float | None
    reason: str | None


def self_agreement(ratings: ArrayLike, clusters: ArrayLike) -> SelfAgreement:
    """Computes the agreement of repeated ratings of the same items.

    Args:
        ratings: Shape (N, K), K ratings of each item, as integers from 0; K is at least 2.
        clusters: Shape (N,), any integers; items with equal labels belong to the same cluster.

    Raises:
        ValueError: If an item has fewer than two ratings.
    """
    found = np.asarray(ratings, dtype=np.int64)
    if found.ndim != 2 or found.shape[1] < 2:
        raise ValueError(f"ratings have the shape {found.shape}; expected (N, K) with K at least 2")
    items, repeats = found.shape
    if not items:
        return SelfAgreement(0, 0, None, None, None, None, NOTHING_RATED)
    counts = (found[:, :, None] == np.arange(int(found.max()) + 1)).sum(axis=1)
    alike = (counts * (counts - 1)).sum(axis=1) / (repeats * (repeats - 1))
    mean = estimate_mean(alike, clusters)
    expected = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    kappa = None if expected >= 1.0 else (float(alike.mean()) - expected) / (1.0 - expected)
    low, high = mean.low, mean.high
    reason = NO_VARIETY if kappa is None else None if low is not None else ONE_CLUSTER
    return SelfAgreement(
        items,
        int((alike == 1.0).sum()),
        float(alike.mean()),
        None if low is None else max(low, 0.0),
        None if high is None else min(high, 1.0),
        kappa,
        reason,
    )


def kappa_of_table(table: NDArray[np.float64]) -> float | None:
    """Returns kappa for a table of counts or weights (rows: one rater, columns: the other); None as in `Agreement`."""
    total = table.sum()
    if not total:
        return None
    expected = float((table.sum(axis=0) @ table.sum(axis=1)) / total**2)
    observed = float(np.trace(table) / total)
    return None if expected >= 1.0 else (observed - expected) / (1.0 - expected)

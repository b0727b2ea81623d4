"""How far two raters agree beyond chance."""

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
        kappa: (observed - expected) / (1 - expected), at most 1; None where chance alone gives full agreement.
        se: Its standard error, the jackknife over clusters; None for fewer than two, or where leaving one out leaves
            no kappa.
        low: Lower end of the 95% interval; None where ``se`` is.
        high: Upper end of the 95% interval, at most 1; None where ``se`` is.
        reason: Why numbers are missing; None where all are there.
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
    """Agreement of two raters.

    Args:
        first: Shape (N,), what one said of each item, whole numbers from 0.
        second: Shape (N,), what the other said, in the same numbers.
        clusters: Shape (N,), any integers; equal labels, same cluster.
    """
    one, other = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    if not len(one):
        return Agreement(0, 0, None, None, None, None, None, NOTHING_RATED)
    _, codes = np.unique(as_codes(clusters, len(one)), return_inverse=True)
    size = int(max(one.max(), other.max())) + 1
    count = int(codes.max()) + 1
    # One table of counts a cluster: leaving a cluster out is a subtraction.
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
    """How far a rater who is asked the same several times agrees with itself.

    Attributes:
        n: Items.
        unanimous: Items with one rating every time.
        agreement: Chance that two ratings of one item are the same, 0..1; None without items.
        low: Lower end of its 95% interval, clustered; None for fewer than two clusters.
        high: Upper end of that.
        kappa: Fleiss' kappa (1971, "Measuring nominal scale agreement among many raters"), at most 1; None where chance
            alone gives full agreement.
        reason: Why numbers are missing; None where all are there.
    """

    n: int
    unanimous: int
    agreement: float | None
    low: float | None
    high: float | None
    kappa: float | None
    reason: str | None


def self_agreement(ratings: ArrayLike, clusters: ArrayLike) -> SelfAgreement:
    """Agreement of ratings of the same items.

    Args:
        ratings: Shape (N, K), whole numbers from 0, K at least 2.
        clusters: Shape (N,), any integers; equal labels, same cluster.

    Raises:
        ValueError: If there are fewer than two ratings an item.
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
    """Kappa of a table of counts or weights, a row a word of one rater, a column a word of the other; None as there."""
    total = table.sum()
    if not total:
        return None
    expected = float((table.sum(axis=0) @ table.sum(axis=1)) / total**2)
    observed = float(np.trace(table) / total)
    return None if expected >= 1.0 else (observed - expected) / (1.0 - expected)

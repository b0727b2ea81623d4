"""Agreement of raters beyond chance (Cohen's and Fleiss' kappa)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eval_pipeline.statistics._clusters import NO_TURNS, ONE_CLUSTER, as_codes
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


NOT_EXPECTED: Final = "no turn expects the label, and none gives it"


@dataclass(frozen=True, slots=True)
class LabelScore:
    """F1 of a label, or the macro F1 of all labels.

    Attributes:
        n: Turns that expect the label; for macro F1 all turns.
        given: Turns that give the label; for macro F1 turns that give any label.
        precision: Share of ``given`` that is right, 0..1; None without any, and for macro F1.
        recall: Share of ``n`` that is right, 0..1; None without any, and for macro F1.
        f1: 2 right / (n + given), 0..1; for macro F1 the mean over labels that are expected; None without any.
        low: Lower end of the 95% interval, at least 0; None for fewer than two clusters.
        high: Upper end of the same interval, at most 1.
        reason: Why numbers are missing; None if none is.
    """

    n: int
    given: int
    precision: float | None
    recall: float | None
    f1: float | None
    low: float | None
    high: float | None
    reason: str | None


def label_scores(
    expected: ArrayLike, said: ArrayLike, clusters: ArrayLike, labels: int
) -> tuple[list[LabelScore], LabelScore]:
    """Computes F1 of each label and macro F1.

    Intervals are by the jackknife over clusters on the t distribution (Efron and Tibshirani 1993, "An Introduction to
    the Bootstrap", chapter 11): F1 is a smooth function of the counts of a confusion table, for which the jackknife
    agrees with the delta method of Takahashi et al. 2022, "Confidence interval for micro-averaged F1 and macro-averaged
    F1 scores", and takes clusters into account.

    Args:
        expected: Shape (N,), integers from 0.
        said: Shape (N,), with the same codes; -1 for no label.
        clusters: Shape (N,), any integers; items with equal labels belong to the same cluster.
        labels: How many labels there are.

    Returns:
        The score of each label in the order of codes, and macro F1: the mean over labels that some turn expects.
    """
    right, theirs = np.asarray(expected, dtype=np.int64), np.asarray(said, dtype=np.int64)
    if not len(right):
        nothing = LabelScore(0, 0, None, None, None, None, None, NO_TURNS)
        return [nothing] * labels, nothing
    _, codes = np.unique(as_codes(clusters, len(right)), return_inverse=True)
    # By cluster and label how often it is expected, given and both, so that leaving a cluster out is a subtraction.
    counts = np.zeros((int(codes.max()) + 1, labels, 3))
    named, hit = theirs >= 0, right == theirs
    np.add.at(counts[..., 0], (codes, right), 1)
    np.add.at(counts[..., 1], (codes[named], theirs[named]), 1)
    np.add.at(counts[..., 2], (codes[hit], right[hit]), 1)
    whole = counts.sum(axis=0)
    without = whole - counts
    kept = whole[:, 0] > 0
    each = [_label(whole[place], _f1(without[:, place])) for place in range(labels)]
    macro = float(_f1(whole)[kept].mean())
    # A label that only the cluster left out has gets an F1 of 0, which widens the interval.
    means = [float(np.nan_to_num(_f1(table)[kept]).mean()) for table in without]
    low, high, reason = _interval(macro, np.array(means))
    return each, LabelScore(len(right), int(named.sum()), None, None, macro, low, high, reason)


def _label(counts: NDArray[np.float64], without: NDArray[np.float64]) -> LabelScore:
    n, given, right = (int(count) for count in counts)
    precision, recall = right / given if given else None, right / n if n else None
    if not n + given:
        return LabelScore(0, 0, None, None, None, None, None, NOT_EXPECTED)
    f1 = 2 * right / (n + given)
    if np.isnan(without).any():  # only one cluster has the label: nothing says how much it varies
        return LabelScore(n, given, precision, recall, f1, None, None, ONE_CLUSTER)
    low, high, reason = _interval(f1, without)
    return LabelScore(n, given, precision, recall, f1, low, high, reason)


def _f1(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """F1 from counts of expected, given and both in the last axis; NaN without expected and given."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found: NDArray[np.float64] = 2 * counts[..., 2] / (counts[..., 0] + counts[..., 1])
    return found


def _interval(value: float, without: NDArray[np.float64]) -> tuple[float | None, float | None, str | None]:
    count = len(without)
    if count < 2:
        return None, None, ONE_CLUSTER
    se = float(np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum()))
    margin = t_critical(count - 1) * se
    return max(value - margin, 0.0), min(value + margin, 1.0), None

"""Precision, recall and F1 of labels, with intervals that respect clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eval_pipeline.statistics._clusters import NO_TURNS, ONE_CLUSTER, as_codes
from eval_pipeline.statistics._special import t_critical

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

"""Paired comparison of two models' accuracies on the same turns (docs/statistics.md).

With d_i = second minus first on turn i, the difference is the mean of the d_i. Its standard error is clustered, as in
`intervals` (Miller 2024, arXiv:2411.00640, section 4.2).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eval_pipeline.statistics._clusters import ONE_CLUSTER, as_codes, as_verdicts
from eval_pipeline.statistics._special import CONFIDENCE, t_critical, t_p_value

_EXACT: Final = 50
"""Up to this number of coins, 2**count and all binomial coefficients are exact floats."""


def mcnemar_exact(net: NDArray[np.int64]) -> float:
    """Returns the exact two-sided p-value of the hypothesis that neither model is better.

    If neither of two models is better, each conversation's net gain could equally well have the other sign. The p-value
    is the share of all assignments of signs whose sum is at least as far from 0 as the observed one (Fisher's
    randomization test of paired differences, 1935). If no conversation gained or lost more than one turn, this is
    McNemar's exact test (McNemar 1947), a binomial test of the discordant turns. Otherwise it is that test's form for
    clusters, in which the turns of one conversation change together.

    Gains are small whole numbers, so the assignments need not be sampled or enumerated: the sum over the k
    conversations that changed by s turns is s (2 B - k) with B binomial, and the distributions for each s are
    convolved. The result is exact for any number of conversations.

    Args:
        net: Shape (C,), turns that only the second model got right minus those that only the first one did.

    Returns:
        A p-value above 0 and at most 1; 1 if nothing changed.
    """
    sizes, counts = np.unique(np.abs(net[net != 0]), return_counts=True)
    chances = np.ones(1)  # probability of each sum from -reach to +reach
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        steps = np.zeros(2 * size * count + 1)
        steps[:: 2 * size] = _coins(count)
        chances = np.convolve(chances, steps)
    reach = chances.size // 2
    sums = np.abs(np.arange(-reach, reach + 1))
    share = float(chances[sums >= abs(int(net.sum()))].sum())
    # For a thousand conversations with the same sign, the p-value underflows to 0, although it is not 0.
    return min(1.0, max(share, sys.float_info.min))


def _coins(count: int) -> NDArray[np.float64]:
    """Returns the probabilities of 0 to ``count`` heads in ``count`` fair tosses.

    Uses logarithms if 2**count is too large.
    """
    if count <= _EXACT:
        return np.array([math.comb(count, heads) for heads in range(count + 1)]) / 2.0**count
    heads = np.arange(1, count + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(count - heads + 1) - np.log(heads))])
    chances: NDArray[np.float64] = np.exp(logs - count * math.log(2.0))
    return chances


FEW_CHANGED: Final = 10
"""With fewer changed conversations than this, the exact test is used.

The t test's p-values would be too low: with fewer than six, even a change of all in one direction is not rarer than 5%.
With more, the t test's false-alarm rate is 5 ± 1% (docs/statistics.md).
"""
POWER: Final = 0.8
"""Probability of detecting a difference of the minimum detectable size."""

PairedMethod = Literal["t_clustered", "mcnemar_exact", "none"]
_NO_COMMON: Final = "no common turns"
_ALPHA: Final = 1.0 - CONFIDENCE


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The difference of two models' accuracies on the turns that were scored for both.

    Attributes:
        n: Common turns.
        clusters: Conversations among them.
        first: Accuracy of the first model on them, 0..1; None without common turns.
        second: Accuracy of the second model on them; None if ``first`` is.
        difference: ``second - first``, -1..1; None if ``first`` is.
        se: Clustered standard error of the difference; None for fewer than two clusters.
        p_value: Two-sided p-value of "no difference", above 0 and at most 1; None if ``se`` is.
        method: `t_clustered`: t with C - 1 degrees of freedom. `mcnemar_exact`: see the function of that name; used if
            fewer than `FEW_CHANGED` conversations have a net change, or if ``se`` is 0 because all changed alike.
        broken: Turns that only the first model got right.
        fixed: Turns that only the second model got right.
        changed: Conversations whose number of right turns differs.
        correlation: Correlation (phi) of the two models' verdicts, -1..1; None if one model's verdicts are all the
            same.
        detectable: Smallest true difference that this comparison would detect with a probability of 80%; None if
            ``se`` is, or if even a difference of 1 would not be detected.
        centre: Middle of the intervals; None if ``se`` is.
        spread: Standard error used for the intervals; None if ``se`` is.
        gains: Net gain in right turns of each conversation whose gain is not 0; empty if there is no test.
        reason: Why numbers other than ``correlation`` and ``detectable`` are missing; None if none is.
    """

    n: int
    clusters: int
    first: float | None
    second: float | None
    difference: float | None
    se: float | None
    p_value: float | None
    method: PairedMethod
    broken: int
    fixed: int
    changed: int
    correlation: float | None
    detectable: float | None
    centre: float | None
    spread: float | None
    reason: str | None
    gains: tuple[int, ...] = ()

    @property
    def p_exact(self) -> float | None:
        """p-value of "no difference" by the exact sign-flip test (`mcnemar_exact`); None if ``p_value`` is.

        The test assumes only that conversations are independent, not any distribution of the errors. It equals
        ``p_value`` if ``method`` is `mcnemar_exact`.
        """
        if self.p_value is None or self.method == "mcnemar_exact":
            return self.p_value
        return mcnemar_exact(np.array(self.gains, dtype=np.int64))

    def interval(self, alpha: float = _ALPHA) -> tuple[float | None, float | None]:
        """Returns the interval of the difference with error probability ``alpha``, cut to -1..1.

        The interval is centre ± t · spread. For `t_clustered`, these are the difference and its clustered error. With
        few changes such an interval would be too short (and of length 0 with none). For `mcnemar_exact`, two
        conversations of average length are therefore added, one with a broken turn and one with a fixed turn. This is
        Bonett and Price's adjustment for paired rates (2012, doi:10.3102/1076998611411915), applied to conversations.
        Where conversations differ much in length, it may still be too short: where the exact test does not reject, the
        interval holds 0.
        """
        if self.centre is None or self.spread is None:
            return None, None
        half = t_critical(self.clusters - 1, alpha) * self.spread
        low, high = max(-1.0, self.centre - half), min(1.0, self.centre + half)
        if self.method == "mcnemar_exact" and self.p_value is not None and self.p_value > alpha:
            return min(low, 0.0), max(high, 0.0)
        return low, high


def paired_difference(first: ArrayLike, second: ArrayLike, clusters: ArrayLike) -> PairedDifference:
    """Compares two models' accuracies on the same turns and tests whether they differ.

    Args:
        first: Shape (N,), the first model's verdicts: 1 right, 0 wrong, NaN not scored.
        second: Shape (N,), the second model's on the same turns and samples.
        clusters: Shape (N,), integers; turns with equal labels belong to the same conversation.

    Returns:
        The comparison over the turns scored for both; numbers that cannot be computed are None, with a reason.

    Raises:
        TypeError: If the labels are not integers.
        ValueError: If the shapes do not fit or a verdict is neither 0, 1 nor NaN.
    """
    a, b, labels = as_verdicts(first, "first"), as_verdicts(second, "second"), np.asarray(clusters)
    if not a.shape == b.shape == labels.shape:
        raise ValueError(f"first, second and clusters must have one shape, got {a.shape}, {b.shape} and {labels.shape}")
    both = ~(np.isnan(a) | np.isnan(b))
    a, b, codes = a[both], b[both], as_codes(labels[both], int(both.sum()))
    n, right_a, right_b = a.size, int(a.sum()), int(b.sum())
    counted = np.bincount(codes)
    used = counted > 0
    turns, net = counted[used], np.rint(np.bincount(codes, weights=b - a)[used]).astype(np.int64)
    count, changed = turns.size, int(np.count_nonzero(net))
    fixed = int(((b - a) > 0).sum())
    broken = fixed - (right_b - right_a)
    known: dict[str, Any] = {"n": n, "clusters": count, "broken": broken, "fixed": fixed, "changed": changed}
    if n == 0:
        return _untested(_NO_COMMON, **known)
    difference = (right_b - right_a) / n
    known |= {"first": right_a / n, "second": right_b / n, "difference": difference}
    known |= {"correlation": _phi(n, right_a, right_b, int((a * b).sum()))}
    if count == 1:
        return _untested(ONE_CLUSTER, **known)
    se = _error(net, turns)
    if changed < FEW_CHANGED or se == 0.0:
        method: PairedMethod = "mcnemar_exact"
        p_value, length = mcnemar_exact(net), n / count
        spread = _error(np.append(net, (1, -1)), np.append(turns, (length, length)))
        centre = (right_b - right_a) / (n + 2 * length)
    else:
        method = "t_clustered"
        p_value, centre, spread = t_p_value(difference / se, count - 1), difference, se
    tested: dict[str, Any] = {"se": se, "p_value": p_value, "centre": centre, "spread": spread}
    detectable = minimum_detectable(spread, count - 1)
    gains = tuple(net[net != 0].tolist())
    return PairedDifference(**known, **tested, detectable=detectable, method=method, reason=None, gains=gains)


def minimum_detectable(se: float, df: int) -> float | None:
    """Returns the smallest true difference that a two-sided test at 5% detects with a probability of 80%.

    It is (t of 97.5% + t of 80%) · SE, after Bloom (1995, Evaluation Review 19) and Miller (2024), with the degrees of
    freedom of the comparison.

    Args:
        se: Standard error of the difference.
        df: Its degrees of freedom, at least 1.

    Returns:
        The difference in the unit of ``se``; None if it exceeds 1, as rates cannot differ by more.
    """
    found = (t_critical(df) + t_critical(df, 2.0 * (1.0 - POWER))) * se
    return found if found <= 1.0 else None


def _error(net: NDArray[np.float64] | NDArray[np.int64], turns: NDArray[np.float64] | NDArray[np.int64]) -> float:
    """Computes the clustered standard error of the mean difference from each cluster's net gain and number of turns."""
    n, count = float(turns.sum()), net.size
    # Residual sums times N, which are whole numbers if the lengths are.
    residuals = n * net - float(net.sum()) * turns
    return math.sqrt(float(residuals @ residuals) * count / (count - 1)) / n**2


def _phi(n: int, right_a: int, right_b: int, both: int) -> float | None:
    """Returns Pearson's correlation of two columns of verdicts; None if one is constant."""
    scale = right_a * (n - right_a) * right_b * (n - right_b)
    return (n * both - right_a * right_b) / math.sqrt(scale) if scale else None


def _untested(reason: str, **known: Any) -> PairedDifference:
    """Returns a comparison without a standard error and a test, with the reason."""
    figures = ("first", "second", "difference", "se", "p_value", "correlation", "detectable", "centre", "spread")
    missing: dict[str, Any] = dict.fromkeys(figures)
    return PairedDifference(**(missing | known), method="none", reason=reason)


class CorrectedTest(NamedTuple):
    """A test among several.

    Attributes:
        p_value: Adjusted p-value, 0..1, to be compared with 0.05 as for a single test.
        alpha: Error probability for this test's interval; the interval then contains 0 if ``p_value`` is 0.05 or more.
    """

    p_value: float
    alpha: float


def holm(p_values: Sequence[float | None]) -> list[CorrectedTest | None]:
    """Applies Holm's step-down correction (Holm 1979): the probability of any false alarm is then at most 5%.

    Args:
        p_values: One for each test; None for tests that could not be made, which are not counted.

    Returns:
        In the order of ``p_values``, None if the input is None. The adjusted p-value at rank i of m is the largest
        of (m - j + 1) p_j over ranks j up to i. Its interval uses the level 0.05 / (m - i + 1); all tests that are not
        significant use the level at which the first of them failed.
    """
    ranked = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    found: list[CorrectedTest | None] = [None] * len(p_values)
    largest, alpha = 0.0, _ALPHA
    for rank, (p, place) in enumerate(ranked):
        remaining = len(ranked) - rank
        if largest < _ALPHA:
            alpha = _ALPHA / remaining
        largest = max(largest, min(1.0, remaining * p))
        found[place] = CorrectedTest(largest, alpha)
    return found

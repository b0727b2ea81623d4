"""Two models on the same turns: the difference of their accuracies, paired turn by turn (docs/statistics.md).

With d_i = second minus first on turn i, the difference is the mean of the d_i, and its error is clustered like every
other (`intervals`; Miller 2024, arXiv:2411.00640, section 4.2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eval_pipeline.statistics._clusters import ONE_CLUSTER, as_codes, as_verdicts
from eval_pipeline.statistics._special import CONFIDENCE, t_critical, t_p_value
from eval_pipeline.statistics.mcnemar import mcnemar_exact

FEW_CHANGED: Final = 10
"""Fewer conversations with a net change are few: too few for t, whose p-values come out too low (below six not even all
of them one way is rarer than 5%). Where there are more, its false alarms are 5 ± 1% (docs/statistics.md)."""
POWER: Final = 0.8
"""Chance of being found that a difference of the minimum detectable size has."""

PairedMethod = Literal["t_clustered", "mcnemar_exact", "none"]
_NO_COMMON: Final = "no common turns"
_ALPHA: Final = 1.0 - CONFIDENCE


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """How the accuracies of two models differ on the turns that both were scored on.

    Attributes:
        n: Common turns.
        clusters: Conversations among them.
        first: Accuracy of the first model on them, 0..1; None without common turns.
        second: Accuracy of the second model on them; None where ``first`` is.
        difference: ``second - first``, -1..1; None where ``first`` is.
        se: Clustered standard error of the difference; None for fewer than two clusters.
        p_value: Of there being no difference, two-sided, above 0 up to 1; None where ``se`` is.
        method: `t_clustered`: t with C - 1 degrees of freedom. `mcnemar_exact`: see `mcnemar_exact`; used below
            `FEW_CHANGED` conversations with a net change, and where all changed alike so that ``se`` is 0.
        broken: Turns that only the first model got right.
        fixed: Turns that only the second model got right.
        changed: Conversations whose number of right turns differs.
        correlation: Of the two models' verdicts over the turns (phi), -1..1; None where one of them is constant.
        detectable: Smallest true difference that this comparison would have found with a chance of 80%; None where
            ``se`` is, or where not even a difference of 1 would have been.
        centre: Middle of the intervals; None where ``se`` is.
        spread: Standard error that the intervals are made with; None where ``se`` is.
        gains: Net gain in right turns of each conversation that has one, not 0 each; empty where there is no test.
        reason: Why numbers are missing; None where all are there but ``correlation`` and ``detectable``.
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
        """Of there being no difference by the exact sign-flip test (`mcnemar_exact`); None where ``p_value`` is.

        It needs no distribution of the errors, only that the conversations are independent. The same as ``p_value``
        where that is of `mcnemar_exact`.
        """
        if self.p_value is None or self.method == "mcnemar_exact":
            return self.p_value
        return mcnemar_exact(np.array(self.gains, dtype=np.int64))

    def interval(self, alpha: float = _ALPHA) -> tuple[float | None, float | None]:
        """Both ends of the interval of the difference that errs with the chance ``alpha``, within -1..1.

        Centre ± t · spread; of `t_clustered` those are difference and clustered error. With few changes that interval
        would be too short (and of length 0 with none), so that for `mcnemar_exact` two conversations of average length
        are added, one with a turn broken and one with a turn fixed: Bonett and Price's (2012, doi:10.3102/
        1076998611411915) adjustment for paired rates, here by conversation.
        """
        if self.centre is None or self.spread is None:
            return None, None
        half = t_critical(self.clusters - 1, alpha) * self.spread
        return max(-1.0, self.centre - half), min(1.0, self.centre + half)


def paired_difference(first: ArrayLike, second: ArrayLike, clusters: ArrayLike) -> PairedDifference:
    """Paired difference of two models' accuracies, with the test that there is none.

    Args:
        first: Shape (N,), the first model's verdicts: 1 right, 0 wrong, NaN not scored.
        second: Shape (N,), the second model's on the same turns and samples.
        clusters: Shape (N,), integers; equal labels, same conversation.

    Returns:
        The comparison over turns scored for both; null with a reason where they carry none.

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
    """Smallest true difference that a two-sided test at 5% finds with a chance of 80%.

    (t of 97.5% + t of 80%) · SE, after Bloom (1995, Evaluation Review 19) and Miller (2024), with the degrees of
    freedom of the comparison.

    Args:
        se: Standard error of the difference.
        df: Its degrees of freedom, at least 1.

    Returns:
        In the unit of ``se``; None above 1, where no difference of rates would be found.
    """
    found = (t_critical(df) + t_critical(df, 2.0 * (1.0 - POWER))) * se
    return found if found <= 1.0 else None


def _error(net: NDArray[np.float64] | NDArray[np.int64], turns: NDArray[np.float64] | NDArray[np.int64]) -> float:
    """Clustered standard error of the mean difference, from the net gain and the number of turns of each cluster."""
    n, count = float(turns.sum()), net.size
    # N times the residual sums, so that they are whole numbers where the lengths are.
    residuals = n * net - float(net.sum()) * turns
    return math.sqrt(float(residuals @ residuals) * count / (count - 1)) / n**2


def _phi(n: int, right_a: int, right_b: int, both: int) -> float | None:
    """Pearson's correlation of two columns of verdicts."""
    scale = right_a * (n - right_a) * right_b * (n - right_b)
    return (n * both - right_a * right_b) / math.sqrt(scale) if scale else None


def _untested(reason: str, **known: Any) -> PairedDifference:
    """The comparison of data that carry no error."""
    figures = ("first", "second", "difference", "se", "p_value", "correlation", "detectable", "centre", "spread")
    missing: dict[str, Any] = dict.fromkeys(figures)
    return PairedDifference(**(missing | known), method="none", reason=reason)

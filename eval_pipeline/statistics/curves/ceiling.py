"""Accuracy by complexity, and the complexity up to which it stays high (statistics.md, "complexity_ceiling")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eval_pipeline.statistics._clusters import ONE_CLUSTER
from eval_pipeline.statistics._special import CONFIDENCE
from eval_pipeline.statistics.curves._levels import antitonic_from_sums, by_cluster, complete, merge_small
from eval_pipeline.statistics.curves.logistic import clustered_logistic
from eval_pipeline.statistics.intervals import Estimate, estimate_rate

Verdict = Literal["ceiling observed", "no ceiling observed", "below threshold at the lowest level", "insufficient data"]

_MIN_LEVELS: Final = 3
_TOO_FEW: Final = "insufficient data"
_CELLS: Final = 200_000
"""Limit on bootstrap weights in memory at once (1.6 MB); larger numbers of draws are split into chunks."""
_ROWS: Final = 20_000
"""Clusters that are sorted at once."""


@dataclass(frozen=True, slots=True)
class LevelEstimate:
    """Accuracy at one level of complexity.

    Attributes:
        level: The complexity, e.g. a turn number or a number of operations.
        estimate: Accuracy of the turns at this level, with its interval.
    """

    level: float
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class FittedLevel:
    """One level of the fitted curve: a group of merged levels if single ones were too small.

    Attributes:
        level: The level that represents the group: the one that the others were merged into.
        lowest: Lowest complexity merged into it.
        highest: Highest complexity merged into it.
        n: Number of turns.
        accuracy: Share of right turns, 0..1.
        fitted: Value of the monotone curve at this level, 0..1; None if there are too few levels for a fit.
    """

    level: float
    lowest: float
    highest: float
    n: int
    accuracy: float
    fitted: float | None


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The highest complexity at which the monotone accuracy curve is still at or above a threshold.

    Attributes:
        threshold: τ, 0..1.
        ceiling: The complexity; None if the curve never falls below τ, if it starts below τ, or if data are
            insufficient.
        ceiling_low: Lower end of the 95% bootstrap interval; None if it lies below the lowest level. If the whole
            interval lies above the highest level, it is the highest level: the ceiling is at least that.
        ceiling_high: Upper end; None if it lies above the highest level ("interval open above") or below the lowest.
        slope: Change of the log odds of a right answer per step of complexity; None as in `LogisticFit`.
        odds_ratio: exp(slope); None as in `LogisticFit`.
        p_value: Two-sided p of slope = 0; None as in `LogisticFit`.
        verdict: The result in words.
        reason: Why numbers are missing, several reasons joined by "; "; None if none is missing.
        levels: The levels of the fit, in ascending order.
    """

    threshold: float
    ceiling: float | None
    ceiling_low: float | None
    ceiling_high: float | None
    slope: float | None
    odds_ratio: float | None
    p_value: float | None
    verdict: Verdict
    reason: str | None
    levels: tuple[FittedLevel, ...]


def accuracy_by_level(levels: ArrayLike, correct: ArrayLike, clusters: ArrayLike) -> list[LevelEstimate]:
    """Estimates accuracy at each level, without merging (statistics.md, "complexity_ceiling", "Per level").

    Args:
        levels: Shape (N,), complexity of each turn; turns with NaN (unknown) are left out.
        correct: Shape (N,), 1 for right and 0 for wrong; turns with NaN (missing) are left out.
        clusters: Shape (N,), any integers; turns with equal labels belong to the same cluster.

    Returns:
        One entry for each level, in ascending order.

    Raises:
        TypeError: If the labels are not integers.
        ValueError: If the shapes do not fit or ``correct`` is neither 0, 1 nor NaN.
    """
    level, right, codes = complete(levels, correct, clusters)
    distinct, where = np.unique(level, return_inverse=True)
    by_level = np.argsort(where, kind="stable")
    parts = np.split(by_level, np.cumsum(np.bincount(where))[:-1]) if distinct.size else []
    return [
        LevelEstimate(float(value), estimate_rate(right[part], codes[part]))
        for value, part in zip(distinct, parts, strict=True)
    ]


def complexity_ceiling(
    levels: ArrayLike,
    correct: ArrayLike,
    clusters: ArrayLike,
    threshold: float = 0.5,
    draws: int = 1000,
    seed: int = 0,
    min_per_level: int = 20,
) -> Ceiling:
    """Computes the ceiling, its bootstrap interval and the slope of accuracy over complexity.

    The method is described in statistics.md, "complexity_ceiling". Small levels are merged first: from the highest
    down, a level with fewer than ``min_per_level`` turns (including those merged into it) is merged into the level
    below; if the lowest is still too small, it is merged into the next one up. A group is represented by the level that
    the others were merged into. This is its lowest member, unless the lowest level of all was merged upwards. So no
    ceiling is claimed above the levels whose turns support it.

    The interval is a percentile bootstrap over clusters (Field and Welsh 2007); a drawn cluster contributes all its
    turns. Quantiles are taken at order statistics without interpolation, because levels are discrete. The result
    depends on the seed but not on the order or the labels of the turns. Draws whose curve never falls below the
    threshold count as above the highest level; draws whose curve starts below it count as below the lowest.

    Args:
        levels: Shape (N,), complexity of each turn; turns with NaN (unknown) are left out.
        correct: Shape (N,), 1 for right and 0 for wrong; turns with NaN (missing) are left out.
        clusters: Shape (N,), any integers; turns with equal labels belong to the same cluster.
        threshold: τ, above 0 and at most 1.
        draws: Bootstrap draws, at least 1.
        seed: Seed of the bootstrap.
        min_per_level: A level with fewer turns is merged; at least 1.

    Returns:
        The ceiling; its verdict is "insufficient data" if fewer than three levels remain after merging.

    Raises:
        TypeError: If the labels are not integers.
        ValueError: If the shapes do not fit, ``correct`` is neither 0, 1 nor NaN, or a setting is out of range.
    """
    if not 0.0 < threshold <= 1.0:
        raise ValueError(f"threshold must be above 0 and at most 1, got {threshold}")
    if draws < 1 or min_per_level < 1:
        raise ValueError(f"draws and min_per_level must be at least 1, got {draws} and {min_per_level}")
    level, right, codes = complete(levels, correct, clusters)
    merged = _merged(level, right, min_per_level)
    group, values, curve, fitted = merged.group, merged.values, merged.curve, merged.levels
    if curve is None:
        return Ceiling(threshold, None, None, None, None, None, None, _TOO_FEW, _TOO_FEW, fitted)

    size = len(values)
    held = int(np.count_nonzero(curve >= threshold))
    verdict, reasons = _verdict(held, size)
    ceiling = None if reasons else float(values[held - 1])
    low: float | None = None
    high: float | None = None
    table = by_cluster(group, right, codes, size)
    if len(table) > 1:
        low, high, open_ends = _interval(_bootstrap_held(table, threshold, draws, seed), values)
        reasons += open_ends
    else:
        reasons.append(ONE_CLUSTER)
    fit = clustered_logistic(values[group], right, codes)
    if fit.reason is not None and fit.reason not in reasons:
        reasons.append(f"slope: {fit.reason}")
    reason = "; ".join(reasons) or None
    return Ceiling(threshold, ceiling, low, high, fit.slope, fit.odds_ratio, fit.p_value, verdict, reason, fitted)


def fitted_curve(levels: ArrayLike, correct: ArrayLike, min_per_level: int = 20) -> tuple[FittedLevel, ...]:
    """Returns the curve that `complexity_ceiling` compares with its threshold, for the same arguments.

    Raises:
        ValueError: As `complexity_ceiling`.
    """
    level, right, _ = complete(levels, correct, np.zeros(np.shape(levels), np.int64))
    return _merged(level, right, min_per_level).levels


@dataclass(frozen=True, slots=True)
class _Merged:
    """Turns by merged level.

    Attributes:
        group: Shape (N,), the group of each turn, from 0.
        values: Shape (L,), the level that represents each group.
        curve: Shape (L,), the monotone curve; None with too few levels.
        levels: The same as values that others can read.
    """

    group: NDArray[np.int64]
    values: NDArray[np.float64]
    curve: NDArray[np.float64] | None
    levels: tuple[FittedLevel, ...]


def _merged(level: NDArray[np.float64], right: NDArray[np.float64], least: int) -> _Merged:
    distinct, where, counts = np.unique(level, return_inverse=True, return_counts=True)
    group_of, represented = merge_small(counts, least)
    group, values, size = group_of[where], distinct[represented], len(represented)
    turns = np.bincount(group, minlength=size).astype(np.float64)
    hits = np.bincount(group, weights=right, minlength=size).astype(np.float64)
    curve = antitonic_from_sums(hits, turns) if size >= _MIN_LEVELS else None
    fitted = tuple(
        FittedLevel(
            level=float(values[g]),
            lowest=float(distinct[group_of == g].min()),
            highest=float(distinct[group_of == g].max()),
            n=int(turns[g]),
            accuracy=float(hits[g] / turns[g]),
            fitted=None if curve is None else float(curve[g]),
        )
        for g in range(size)
    )
    return _Merged(group, values, curve, fitted)


def _verdict(held: int, size: int) -> tuple[Verdict, list[str]]:
    """Returns the verdict if ``held`` of ``size`` levels reach the threshold, and the reasons for having no ceiling."""
    if held == size:
        return "no ceiling observed", ["the monotone curve never falls below the threshold"]
    if held == 0:
        return "below threshold at the lowest level", ["the monotone curve starts below the threshold"]
    return "ceiling observed", []


def _bootstrap_held(table: NDArray[np.float64], threshold: float, draws: int, seed: int) -> NDArray[np.int64]:
    """Counts the levels that reach the threshold in each bootstrap draw over clusters.

    Args:
        table: Shape (C, 2 * L), as returned by `by_cluster`.
        threshold: τ.
        draws: Number of draws.
        seed: Seed of the generator.

    Returns:
        Shape (draws,), from 0 (below the lowest level) to L (above the highest).
    """
    size = table.shape[1] // 2
    # Many clusters are alike. The number of draws of each kind is multinomial, so clusters need not be drawn one by
    # one. As the kinds are sorted, the draws do not depend on the labels and the order of the turns.
    kinds, counts = _kinds(table)
    generator = np.random.default_rng(seed)
    held = np.empty(draws, dtype=np.int64)
    chunk = max(1, _CELLS // len(kinds))
    for start in range(0, draws, chunk):
        stop = min(start + chunk, draws)
        weights = generator.multinomial(len(table), counts / len(table), size=stop - start)
        sums = weights @ kinds
        curves = antitonic_from_sums(sums[:, size:], sums[:, :size])
        held[start:stop] = np.count_nonzero(curves >= threshold, axis=1)
    return held


def _kinds(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Returns the distinct rows, sorted, and how often each occurs.

    All rows sorted at once would take five times their memory.
    """
    pieces = [np.unique(table[at : at + _ROWS], axis=0, return_counts=True) for at in range(0, len(table), _ROWS)]
    kinds, where = np.unique(np.concatenate([rows for rows, _ in pieces]), axis=0, return_inverse=True)
    counts = np.zeros(len(kinds), dtype=np.int64)
    np.add.at(counts, where.ravel(), np.concatenate([found for _, found in pieces]))
    return kinds, counts


def _interval(held: NDArray[np.int64], values: NDArray[np.float64]) -> tuple[float | None, float | None, list[str]]:
    """Returns the ends of the ceiling's interval, and the reasons for those that are open.

    Args:
        held: Shape (draws,), as returned by `_bootstrap_held`.
        values: Shape (L,), the levels.

    Returns:
        Low, high, and the reasons for those that are None.
    """
    tail = (1.0 - CONFIDENCE) / 2.0
    low = int(np.quantile(held, tail, method="lower"))
    high = int(np.quantile(held, 1.0 - tail, method="higher"))
    if high == 0:
        return None, None, ["interval below the lowest level"]
    reasons = []
    if low == 0:
        reasons.append("interval open below")
    if high == values.size:
        reasons.append("interval open above")
    return (
        float(values[low - 1]) if low > 0 else None,
        float(values[high - 1]) if high < values.size else None,
        reasons,
    )

"""Calibration: how well a model's stated confidence predicts correctness (docs/sql.md, `confidence_calibration`).

Let n_g be the number of answers of confidence level g, a_g the share of them that is right, p_g the accuracy that the
level's name promises, and N the number of all answers:

    reliability = 1 - sum_g n_g |a_g - p_g| / N
    resolution  = min(1, (a_top - a_bottom) / (p_top - p_bottom)), not below 0, over the levels that occur
    score       = reliability * resolution

What the score means is said in words only if an interval allows them: that of the difference a_top - a_bottom between
the highest and the lowest level with at least ``LEAST_A_LEVEL`` answers, by Newcombe's hybrid score method (1998,
"Interval estimation for the difference between independent proportions", method 10).

The Brier score of the promised accuracies is the sum of three parts (Murphy 1973, "A new vector partition of the
probability score"): sum_g n_g (p_g - a_g)^2 / N - sum_g n_g (a_g - a)^2 / N + a (1 - a), where a is the share of right
answers overall. The decomposition is exact here because all answers of a level have the same forecast.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from eval_pipeline.statistics._clusters import as_verdicts
from eval_pipeline.statistics.intervals import wilson_interval

NOMINAL: Final[Mapping[str, float]] = {"high": 0.9, "medium": 0.7, "low": 0.5}
"""Confidence level → the accuracy that it promises, highest first."""
NOMINAL_VERSION: Final = "1"
LEAST_CASES: Final = 20

LEAST_A_LEVEL: Final = 5
"""Answers that a level needs before words are founded on its accuracy."""
_Z: Final = 1.959963984540054  # of a 95% interval

ACCURATE: Final = "Confidence levels accurately predict correctness"
PARTLY: Final = "Confidence partly predicts correctness"
NOT_PREDICTIVE: Final = "Confidence does not predict correctness"
UNCERTAIN: Final = "Too few answers to tell whether confidence predicts correctness"
OVERCONFIDENT: Final = "Model is overconfident: high confidence is not reliable"
INSUFFICIENT: Final = f"Insufficient data for calibration (need ≥ {LEAST_CASES} cases)"
ONE_LEVEL: Final = "only one confidence level occurs"
ALL_RIGHT: Final = "all answers are right"
ALL_WRONG: Final = "all answers are wrong"
_ACCURATE_FROM: Final = 0.7
_PARTLY_ABOVE: Final = 0.15
_RELIABLE_HIGH: Final = 0.8


@dataclass(frozen=True, slots=True)
class LevelCalibration:
    """One level of confidence.

    Attributes:
        n: Number of answers of the level, at least 1.
        accuracy: Share of them that is right, 0..1.
        nominal: Accuracy that the level promises, 0..1.
    """

    level: str
    n: int
    accuracy: float
    nominal: float


@dataclass(frozen=True, slots=True)
class BrierParts:
    """The Brier score, 0..1 (0 is best), and its parts: ``score = reliability - resolution + uncertainty``."""

    score: float
    reliability: float
    resolution: float
    uncertainty: float


@dataclass(frozen=True, slots=True)
class LevelDifference:
    """How much more often the highest level is right than the lowest, of those with enough answers.

    Attributes:
        value: Difference of their accuracies, -1..1.
        low: Lower end of its 95% interval.
        high: Upper end.
        promised: Difference of their nominal accuracies, above 0.
    """

    value: float
    low: float
    high: float
    promised: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well confidence predicts correctness.

    Attributes:
        n: Answers with a level.
        levels: The levels that occur, highest first.
        reliability: 0..1; None, like the numbers below, if ``reason`` is given.
        resolution: 0..1.
        score: Product of reliability and resolution, 0..1.
        ece: Expected calibration error, 0..1: ``1 - reliability``.
        brier: Brier score with its parts; None without answers.
        difference: Between the levels; None if fewer than two have enough answers.
        verdict: The meaning of the score, in words as strong as the interval of the difference allows; None if
            ``score`` is.
        warning: A warning that high confidence is not reliable, if its interval says so; None otherwise.
        reason: Why there is no score; None if there is one.
    """

    n: int
    levels: tuple[LevelCalibration, ...]
    reliability: float | None
    resolution: float | None
    score: float | None
    ece: float | None
    brier: BrierParts | None
    difference: LevelDifference | None
    verdict: str | None
    warning: str | None
    reason: str | None


def calibrate(
    confidences: Sequence[str | None], correct: ArrayLike, nominal: Mapping[str, float] = NOMINAL
) -> Calibration:
    """Computes the calibration of answers.

    Args:
        confidences: Confidence level of each answer; answers with None are left out.
        correct: Shape (N,), whether each answer is right.
        nominal: Accuracy that each level promises.

    Raises:
        ValueError: If a level is unknown, or the numbers of levels and answers differ.
    """
    unknown = sorted({level for level in confidences if level is not None} - set(nominal))
    if unknown:
        raise ValueError(f"unknown confidence {', '.join(map(repr, unknown))}; known: {', '.join(nominal)}")
    right = as_verdicts(correct)
    if len(right) != len(confidences):
        raise ValueError(f"{len(confidences)} confidences for {len(right)} answers")
    by_level = {
        level: right[[place for place, found in enumerate(confidences) if found == level]]
        for level in sorted(nominal, key=lambda level: -nominal[level])
    }
    levels = tuple(
        LevelCalibration(level, len(values), float(values.mean()), nominal[level])
        for level, values in by_level.items()
        if len(values)
    )
    return _from_levels(levels)


def _from_levels(levels: tuple[LevelCalibration, ...]) -> Calibration:
    n = sum(level.n for level in levels)
    reason = _reason(n, levels)
    ece = sum(level.n * abs(level.accuracy - level.nominal) for level in levels) / n if n else None
    warned = any(level.level == "high" and _interval(level)[1] < _RELIABLE_HIGH for level in levels)
    warning = OVERCONFIDENT if warned and n >= LEAST_CASES else None
    difference, brier = _difference(levels), _brier(levels)
    if reason is not None or ece is None:
        return Calibration(n, levels, None, None, None, None, brier, difference, None, warning, reason)
    top, bottom = levels[0], levels[-1]
    resolution = min(1.0, max(0.0, (top.accuracy - bottom.accuracy) / (top.nominal - bottom.nominal)))
    score = (1.0 - ece) * resolution
    verdict = _verdict(score, difference)
    return Calibration(n, levels, 1.0 - ece, resolution, score, ece, brier, difference, verdict, warning, None)


def _interval(level: LevelCalibration) -> tuple[float, float]:
    return wilson_interval(level.accuracy, level.n, _Z)


def _difference(levels: tuple[LevelCalibration, ...]) -> LevelDifference | None:
    enough = [level for level in levels if level.n >= LEAST_A_LEVEL]
    if len(enough) < 2:
        return None
    top, bottom = enough[0], enough[-1]
    (top_low, top_high), (bottom_low, bottom_high) = _interval(top), _interval(bottom)
    value = top.accuracy - bottom.accuracy
    down = math.hypot(top.accuracy - top_low, bottom_high - bottom.accuracy)
    up = math.hypot(top_high - top.accuracy, bottom.accuracy - bottom_low)
    return LevelDifference(value, value - down, value + up, top.nominal - bottom.nominal)


def _reason(n: int, levels: tuple[LevelCalibration, ...]) -> str | None:
    if n < LEAST_CASES:
        return INSUFFICIENT
    accuracies = {level.accuracy for level in levels}
    if accuracies == {1.0}:
        return ALL_RIGHT
    if accuracies == {0.0}:
        return ALL_WRONG
    return ONE_LEVEL if len(levels) == 1 else None


def _verdict(score: float, difference: LevelDifference | None) -> str:
    """Returns what the score means; says only what the interval of the difference between levels supports."""
    if difference is not None and difference.low > 0.0 and score > _PARTLY_ABOVE:
        return ACCURATE if score >= _ACCURATE_FROM else PARTLY
    if difference is not None and difference.high < difference.promised and score <= _PARTLY_ABOVE:
        return NOT_PREDICTIVE
    return UNCERTAIN


def _brier(levels: tuple[LevelCalibration, ...]) -> BrierParts | None:
    if not levels:
        return None
    n = np.array([level.n for level in levels], dtype=np.float64)
    accuracy = np.array([level.accuracy for level in levels])
    nominal = np.array([level.nominal for level in levels])
    share = n / n.sum()
    base = float(share @ accuracy)
    reliability = float(share @ (nominal - accuracy) ** 2)
    resolution = float(share @ (accuracy - base) ** 2)
    uncertainty = base * (1.0 - base)
    score = float(share @ (accuracy * (1.0 - nominal) ** 2 + (1.0 - accuracy) * nominal**2))
    return BrierParts(score, reliability, resolution, uncertainty)

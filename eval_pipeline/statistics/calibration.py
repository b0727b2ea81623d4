"""Whether a model's words for its confidence say how often it is right (docs/sql.md, `confidence_calibration`).

With n_g answers of level g, a_g the share of them that is right, p_g the accuracy that the level's name promises, and N
answers in all:

    reliability = 1 - sum_g n_g |a_g - p_g| / N
    resolution  = min(1, (a_top - a_bottom) / (p_top - p_bottom)), not below 0, over the levels that occur
    score       = reliability * resolution

The Brier score of the promised accuracies falls into three parts (Murphy 1973, "A new vector partition of the
probability score"): sum_g n_g (p_g - a_g)^2 / N - sum_g n_g (a_g - a)^2 / N + a (1 - a), with a the share of all that
is right. That is exact here, since all answers of a level have the same forecast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from eval_pipeline.statistics._clusters import as_verdicts

NOMINAL: Final[Mapping[str, float]] = {"high": 0.9, "medium": 0.7, "low": 0.5}
"""Accuracy that each level promises, highest first."""
NOMINAL_VERSION: Final = "1"
LEAST_CASES: Final = 20

ACCURATE: Final = "Confidence levels accurately predict correctness"
PARTLY: Final = "Confidence partly predicts correctness"
NOT_PREDICTIVE: Final = "Confidence does not predict correctness"
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
        n: Answers of the level, from 1.
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
class Calibration:
    """How well confidence predicts correctness.

    Attributes:
        n: Answers with a level.
        levels: Those that occur, the highest first.
        reliability: 0..1; None with the others below where there is a reason.
        resolution: 0..1.
        score: Their product, 0..1.
        ece: Expected calibration error, 0..1: ``1 - reliability``.
        brier: Brier score with its parts; None without answers.
        verdict: What the score means, in words; None where ``score`` is.
        warning: That high confidence is not reliable; None where it is, or nobody claimed it.
        reason: Why there is no score; None where there is one.
    """

    n: int
    levels: tuple[LevelCalibration, ...]
    reliability: float | None
    resolution: float | None
    score: float | None
    ece: float | None
    brier: BrierParts | None
    verdict: str | None
    warning: str | None
    reason: str | None


def calibrate(
    confidences: Sequence[str | None], correct: ArrayLike, nominal: Mapping[str, float] = NOMINAL
) -> Calibration:
    """Calibration of answers.

    Args:
        confidences: Level of each answer; None: it told none, and is left out.
        correct: Shape (N,), whether each is right.
        nominal: Accuracy that each level promises.

    Raises:
        ValueError: If a level is unknown, or there are not as many levels as answers.
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
    warned = any(level.level == "high" and level.accuracy < _RELIABLE_HIGH for level in levels)
    warning = OVERCONFIDENT if warned and n >= LEAST_CASES else None
    if reason is not None or ece is None:
        return Calibration(n, levels, None, None, None, None, _brier(levels), None, warning, reason)
    top, bottom = levels[0], levels[-1]
    resolution = min(1.0, max(0.0, (top.accuracy - bottom.accuracy) / (top.nominal - bottom.nominal)))
    score = (1.0 - ece) * resolution
    return Calibration(n, levels, 1.0 - ece, resolution, score, ece, _brier(levels), _verdict(score), warning, None)


def _reason(n: int, levels: tuple[LevelCalibration, ...]) -> str | None:
    if n < LEAST_CASES:
        return INSUFFICIENT
    accuracies = {level.accuracy for level in levels}
    if accuracies == {1.0}:
        return ALL_RIGHT
    if accuracies == {0.0}:
        return ALL_WRONG
    return ONE_LEVEL if len(levels) == 1 else None


def _verdict(score: float) -> str:
    if score >= _ACCURATE_FROM:
        return ACCURATE
    return PARTLY if score > _PARTLY_ABOVE else NOT_PREDICTIVE


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

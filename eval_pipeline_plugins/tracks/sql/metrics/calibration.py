"""Measures, over a whole suite, whether the stated confidence predicts how often the model is right."""

from collections.abc import Sequence
from dataclasses import asdict

from eval_pipeline.core.model import Json, MetricResult
from eval_pipeline.statistics.calibration import Calibration, calibrate


def confidence_calibration(confidences: Sequence[str | None], correct: Sequence[bool]) -> MetricResult:
    """Returns reliability times resolution of `high`, `medium` and `low` (nominally 0.9, 0.7, 0.5 right), from 0 to 1.

    Args:
        confidences: confidence of each answer; None means that none was stated, and such answers are left out.
        correct: whether each is right.

    Returns:
        The score, its meaning as `reason`, and as `details` its parts, the expected calibration error, the Brier score
        with its parts, the levels, the difference in accuracy between the highest and the lowest level with its 95%
        interval, and a warning if high confidence is not reliable. If there are too few answers, only one level or no
        variety, the score is None and the reason says why.

    Raises:
        ValueError: a level is unknown, or the numbers of levels and answers differ.
    """
    found = calibrate(confidences, [float(value) for value in correct])
    said = [text for text in (found.verdict or found.reason, found.warning) if text]
    return MetricResult(found.score, reason=". ".join(said) or None, details=_details(found))


def _details(found: Calibration) -> dict[str, Json]:
    told: dict[str, Json] = {
        "n": found.n,
        "levels": [
            {"level": level.level, "n": level.n, "accuracy": level.accuracy, "nominal": level.nominal}
            for level in found.levels
        ],
        "reliability": found.reliability,
        "resolution": found.resolution,
        "ece": found.ece,
        "warning": found.warning,
    }
    if found.difference is not None:
        told["difference"] = asdict(found.difference)
    if found.brier is not None:
        brier = found.brier
        told |= {"brier": brier.score, "brier_reliability": brier.reliability}
        told |= {"brier_resolution": brier.resolution, "brier_uncertainty": brier.uncertainty}
    return told

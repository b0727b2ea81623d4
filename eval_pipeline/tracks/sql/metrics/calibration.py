"""Whether the model's words for its confidence say how often it is right, over a whole suite."""

from collections.abc import Sequence

from eval_pipeline.core.model import Json, MetricResult
from eval_pipeline.statistics import Calibration, calibrate


def confidence_calibration(confidences: Sequence[str | None], correct: Sequence[bool]) -> MetricResult:
    """Reliability times resolution of `high`, `medium` and `low` (nominal accuracies 0.9, 0.7, 0.5), 0..1.

    Args:
        confidences: of each answer; None: it told none, and is left out.
        correct: whether each is right.

    Returns:
        The score, what it means as `reason`, and in `details` its parts, expected calibration error, Brier score with
        its parts, the levels, and a warning where high confidence is not reliable. None with the reason where there
        are too few answers, one level only, or no variety.

    Raises:
        ValueError: an unknown level, or not as many levels as answers.
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
    if found.brier is not None:
        brier = found.brier
        told |= {"brier": brier.score, "brier_reliability": brier.reliability}
        told |= {"brier_resolution": brier.resolution, "brier_uncertainty": brier.uncertainty}
    return told

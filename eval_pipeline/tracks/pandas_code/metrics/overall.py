"""The overall score: six scores, weighted."""

from collections.abc import Mapping

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.metric import Metric

WEIGHTS: Mapping[str, float] = {
    "correctness": 0.25,
    "quality": 0.20,
    "performance": 0.15,
    "understanding": 0.15,
    "coverage": 0.15,
    "recovery": 0.10,
}


def overall_score(
    correctness_score: float | None,
    quality_score: float | None,
    performance_score: float | None,
    understanding_score: float | None,
    coverage_score: float | None,
    recovery_score: float | None,
    has_error: bool | None,
) -> MetricResult:
    """The weighted mean of the scores that the turn has.

    A turn whose first attempt ran has nothing to recover, which counts as 1.0 here (docs/pandas.md). One whose call
    gave no response has nothing at all: 0.0.
    """
    scores = {
        "correctness": correctness_score,
        "quality": quality_score,
        "performance": performance_score,
        "understanding": understanding_score,
        "coverage": coverage_score,
        "recovery": recovery_score if has_error else float(has_error is False),
    }
    known = {name: score for name, score in scores.items() if score is not None}
    total = sum(WEIGHTS[name] * score for name, score in known.items())
    left_out = [name for name in scores if name not in known]
    reason = f"without {', '.join(left_out)}" if left_out else None
    return MetricResult(total / sum(WEIGHTS[name] for name in known), reason=reason)


METRIC = Metric(
    "overall_score",
    overall_score,
    "score",
    "0.25 correctness + 0.20 quality + 0.15 performance + 0.15 understanding + 0.15 coverage + 0.10 recovery, 0..1; "
    "renormalised over the scores that are not NULL, recovery 1 where the first attempt ran; never NULL.",
)

"""The overall score: the weighted mean of six scores. A second version uses the scores by the question's words."""

from collections.abc import Mapping

from eval_pipeline.core.model import MetricResult

WEIGHTS: Mapping[str, float] = {
    "correctness": 0.25,
    "quality": 0.20,
    "performance": 0.15,
    "understanding": 0.15,
    "coverage": 0.15,
    "recovery": 0.10,
}
FOR_RIGHT_ANSWERS = ("quality", "performance", "recovery")
"""What is worth nothing in an answer that is wrong."""


def overall_score(
    correctness_score: float | None,
    quality_score: float | None,
    performance_score: float | None,
    understanding_score: float | None,
    coverage_score: float | None,
    recovery_score: float | None,
    has_error: bool | None,
    result_match: bool,
    robust_correct: bool | None,
) -> MetricResult:
    """Returns the weighted mean of the scores that the turn has.

    A turn whose first attempt ran has nothing to recover, which counts as 1.0 here (docs/pandas.md). A turn whose call
    gave no response gets 0.0. If an answer is wrong on the given tables or on a variant of them, quality, performance
    and recovery count 0.0, and matching cells count only in proportion to coverage.
    """
    scores = _scores(
        correctness_score,
        quality_score,
        performance_score,
        understanding_score,
        coverage_score,
        recovery_score,
        has_error,
    )
    if not result_match or robust_correct is False:
        scores |= {name: 0.0 for name in FOR_RIGHT_ANSWERS if scores[name] is not None}
        if correctness_score is not None and coverage_score is not None:
            scores["correctness"] = correctness_score * coverage_score
    return _weighted(scores)


def overall_score_from_words(
    correctness_score: float | None,
    quality_score: float | None,
    performance_score: float | None,
    understanding_score_from_words: float | None,
    coverage_score_from_words: float | None,
    recovery_score: float | None,
    has_error: bool | None,
) -> MetricResult:
    """Returns the weighted mean with understanding and coverage by the question's words, whether right or wrong."""
    return _weighted(
        _scores(
            correctness_score,
            quality_score,
            performance_score,
            understanding_score_from_words,
            coverage_score_from_words,
            recovery_score,
            has_error,
        )
    )


def _scores(
    correctness: float | None,
    quality: float | None,
    performance: float | None,
    understanding: float | None,
    coverage: float | None,
    recovery: float | None,
    has_error: bool | None,
) -> dict[str, float | None]:
    return {
        "correctness": correctness,
        "quality": quality,
        "performance": performance,
        "understanding": understanding,
        "coverage": coverage,
        "recovery": recovery if has_error else float(has_error is False),
    }


def _weighted(scores: Mapping[str, float | None]) -> MetricResult:
    known = {name: score for name, score in scores.items() if score is not None}
    total = sum(WEIGHTS[name] * score for name, score in known.items())
    left_out = [name for name in scores if name not in known]
    reason = f"without {', '.join(left_out)}" if left_out else None
    return MetricResult(total / sum(WEIGHTS[name] for name in known), reason=reason)

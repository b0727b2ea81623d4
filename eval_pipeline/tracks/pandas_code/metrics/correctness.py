"""Correctness: compares the final result with the expected one."""

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.metric import Metric


def correctness_score(result_verdict: str | None, result_score: float | None, result_message: str) -> MetricResult:
    """Returns 1.0 for the expected result, otherwise the F1 of matched cells; 0.0 if there is no result."""
    if result_verdict is None:
        return MetricResult(0.0, reason="there is no code")
    if result_score is None:
        return MetricResult(None, reason=result_message)
    return MetricResult(result_score, reason=result_message or None)


def result_match(correctness_score: float | None) -> bool:
    """Returns whether the result is the expected one."""
    return correctness_score == 1.0


METRIC = Metric(
    "correctness_score",
    correctness_score,
    "score",
    "1 where the result is the expected one, else F1 of the matched cells, at most 0.99, 0..1; 0 where the code does "
    "not run; closed answers and tests: 1 or 0; NULL where the reference code gives no result.",
)
MATCH = Metric(
    "result_match",
    result_match,
    "boolean",
    "The primary metric: correctness_score is 1; NULL: not scored.",
)

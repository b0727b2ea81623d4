"""The primary match: within 1%, or within 0.001."""

from eval_pipeline.tracks.finqa.matching import Answer, answers_match
from eval_pipeline.tracks.metric import Metric


def numerical_match(predicted: Answer, expected: float | str) -> bool:
    """Whether |p - e| <= 0.01 |e| or |p - e| < 0.001; text answers must say the same word."""
    return answers_match(predicted, expected)


METRIC = Metric(
    "numerical_match",
    numerical_match,
    "boolean",
    "Answer within 1% or 0.001 of the expected one; NULL: not scored.",
    mean_name="numerical_accuracy",
)

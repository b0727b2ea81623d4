"""A match that ignores whether a number is a percentage or a fraction."""

from eval_pipeline.tracks.finqa.matching import Answer, answers_soft_match, is_number, within_relative
from eval_pipeline.tracks.metric import Metric


def unit_agnostic_match(predicted: Answer, expected: float | str) -> bool:
    """Whether p, 100 p or p / 100 is within 1% of e: 0.10, 10 and 10% agree."""
    if is_number(predicted) and is_number(expected):
        return any(within_relative(scaled, expected) for scaled in (predicted, predicted * 100, predicted / 100))
    return answers_soft_match(predicted, expected)


METRIC = Metric(
    "unit_agnostic_match",
    unit_agnostic_match,
    "boolean",
    "Answer, 100 times it or a hundredth of it within 1% of the expected one; NULL: not scored.",
    mean_name="unit_agnostic_accuracy",
)

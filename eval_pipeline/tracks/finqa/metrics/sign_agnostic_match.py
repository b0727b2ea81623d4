"""A match that ignores the sign."""

from eval_pipeline.tracks.finqa.matching import Answer, answers_soft_match, is_number, within_relative
from eval_pipeline.tracks.metric import Metric


def sign_agnostic_match(predicted: Answer, expected: float | str) -> bool:
    """Whether |p| is within 1% of |e|: -33.3 agrees with 33.3."""
    if is_number(predicted) and is_number(expected):
        return within_relative(abs(predicted), abs(expected))
    return answers_soft_match(predicted, expected)


METRIC = Metric(
    "sign_agnostic_match",
    sign_agnostic_match,
    "boolean",
    "Answer within 1% of the expected one, signs aside; NULL: not scored.",
    mean_name="sign_agnostic_accuracy",
)

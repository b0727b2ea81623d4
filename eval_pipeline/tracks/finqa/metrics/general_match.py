"""A match that also accepts the answer as printed in the filing."""

from eval_pipeline.core.numbers import Number
from eval_pipeline.tracks.finqa.matching import Answer, is_number, within_either, within_relative
from eval_pipeline.tracks.metric import Metric


def general_match(
    predicted: Answer,
    predicted_percent: bool,
    expected: float | str,
    printed_number: Number | None,
    numerical_match: bool,
) -> bool:
    """Whether `numerical_match` holds, or its rule holds for the printed answer, or only the percent sign differs.

    The last means: exactly one of prediction and printed answer has a percent sign, and 100 p or p / 100 is within 1%
    of the expected answer.
    """
    if numerical_match or printed_number is None:
        return numerical_match
    if not is_number(predicted) or isinstance(expected, str):
        return False
    if within_either(predicted, printed_number.value):
        return True
    return predicted_percent != printed_number.percent and (
        within_relative(predicted * 100, expected) or within_relative(predicted / 100, expected)
    )


METRIC = Metric(
    "general_match",
    general_match,
    "boolean",
    "numerical_match, or the same against the printed answer, or a percent mark on one side only; NULL: not scored.",
    mean_name="general_accuracy",
)

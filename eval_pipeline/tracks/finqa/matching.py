"""The tolerances of the matches, in one place: what counts as the same answer."""

from eval_pipeline.core.numbers import normalised_text

Answer = float | str | None
RELATIVE = 0.01
ABSOLUTE = 0.001


def within_relative(predicted: float, expected: float) -> bool:
    """Whether they differ by at most 1% of the expected; false for NaN and infinities."""
    return abs(predicted - expected) <= RELATIVE * abs(expected)


def within_either(predicted: float, expected: float) -> bool:
    """Whether they differ by at most 1% of the expected or by less than 0.001."""
    difference = abs(predicted - expected)
    return difference <= RELATIVE * abs(expected) or difference < ABSOLUTE


def same_text(predicted: Answer, expected: str) -> bool:
    """Whether a predicted text says the same as the expected one; false for numbers and None."""
    return isinstance(predicted, str) and normalised_text(predicted) == normalised_text(expected)


def answers_match(predicted: Answer, expected: float | str) -> bool:
    """The rule of `numerical_match`, the track's idea of a right answer."""
    if isinstance(expected, str):
        return same_text(predicted, expected)
    return isinstance(predicted, float) and within_either(predicted, expected)


def answers_soft_match(predicted: Answer, expected: float | str) -> bool:
    """The rule of `soft_match`."""
    if isinstance(expected, str):
        return same_text(predicted, expected)
    return isinstance(predicted, float) and within_relative(predicted, expected)

"""The tolerances of the match metrics: which answers count as equal."""

from typing import TypeGuard

from eval_pipeline.core.numbers import normalised_text

Answer = float | str | None
RELATIVE = 0.01 * (1 + 1e-12)
"""1%, plus room for rounding errors: 0.101 is within 1% of 0.1."""
ABSOLUTE = 0.001


def is_number(answer: Answer) -> TypeGuard[float]:
    """Whether an answer is a number."""
    return isinstance(answer, float) or (isinstance(answer, int) and not isinstance(answer, bool))


def within_relative(predicted: float, expected: float) -> bool:
    """Whether the two differ by at most 1% of the expected value; False for NaN and infinities."""
    return abs(predicted - expected) <= RELATIVE * abs(expected)


def within_either(predicted: float, expected: float) -> bool:
    """Whether the two differ by at most 1% of the expected value or by less than 0.001."""
    difference = abs(predicted - expected)
    return difference <= RELATIVE * abs(expected) or difference < ABSOLUTE


def same_text(predicted: Answer, expected: str) -> bool:
    """Whether a predicted text equals the expected one after normalisation; False for numbers and None."""
    return isinstance(predicted, str) and normalised_text(predicted) == normalised_text(expected)


def answers_match(predicted: Answer, expected: float | str) -> bool:
    """The rule of `numerical_match`, which defines a right answer in this track."""
    if isinstance(expected, str):
        return same_text(predicted, expected)
    return is_number(predicted) and within_either(predicted, expected)


def answers_soft_match(predicted: Answer, expected: float | str) -> bool:
    """The rule of `soft_match`."""
    if isinstance(expected, str):
        return same_text(predicted, expected)
    return is_number(predicted) and within_relative(predicted, expected)

"""Whether the answer is the expected one, under rules from lenient to strict."""

from eval_pipeline.answers.printed import Number
from eval_pipeline.core.numbers import round_half_up
from eval_pipeline_plugins.tracks.finqa.programs.matching import (
    Answer,
    answers_match,
    answers_soft_match,
    is_number,
    same_text,
    within_either,
    within_relative,
)


def numerical_match(predicted: Answer, expected: float | str) -> bool:
    """Whether |p - e| <= 0.01 |e| or |p - e| < 0.001; text answers must say the same word."""
    return answers_match(predicted, expected)


def soft_match(predicted: Answer, expected: float | str) -> bool:
    """Whether |p - e| <= 0.01 |e|; text answers must say the same word."""
    return answers_soft_match(predicted, expected)


def unit_agnostic_match(predicted: Answer, expected: float | str) -> bool:
    """Whether p, 100 p or p / 100 is within 1% of e: 0.10, 10 and 10% agree."""
    if is_number(predicted) and is_number(expected):
        return any(within_relative(scaled, expected) for scaled in (predicted, predicted * 100, predicted / 100))
    return answers_soft_match(predicted, expected)


def sign_agnostic_match(predicted: Answer, expected: float | str) -> bool:
    """Whether |p| is within 1% of |e|: -33.3 agrees with 33.3."""
    if is_number(predicted) and is_number(expected):
        return within_relative(abs(predicted), abs(expected))
    return answers_soft_match(predicted, expected)


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


def exact_match(
    predicted: Answer, expected: float | str, expected_printed: str | None, printed_number: Number | None
) -> bool | None:
    """Whether p, rounded half up to the printed precision in the printed unit, equals the printed answer.

    Some gold values are in percent (3.18, printed `3.18%`). The prediction may then be in percent as well, so that the
    gold's own value always matches.

    None without a printed form, or if the expected answer is a number and the printed form is not.
    """
    if expected_printed is None:
        return None
    if isinstance(expected, str):
        return same_text(predicted, expected_printed)
    if printed_number is None:
        return None
    if not is_number(predicted):
        return False
    percent, decimals = printed_number.percent, printed_number.decimals
    shown = printed_number.value * 100 if percent else printed_number.value
    units = {100 if percent else 1}
    if percent and abs(expected - shown) < abs(expected - printed_number.value):
        units.add(1)
    wanted = round_half_up(shown, decimals)
    return wanted is not None and any(round_half_up(predicted * unit, decimals) == wanted for unit in units)

"""The strictest match: equal to the printed answer at its precision."""

from eval_pipeline.core.numbers import Number, round_half_up
from eval_pipeline.tracks.finqa.matching import Answer, is_number, same_text
from eval_pipeline.tracks.metric import Metric


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


METRIC = Metric(
    "exact_match",
    exact_match,
    "boolean",
    "Answer rounded half up to the printed precision is the printed answer; NULL without a printed number.",
)

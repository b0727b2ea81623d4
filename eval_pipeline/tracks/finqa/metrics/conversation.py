"""What a turn makes of the turns before it in its conversation."""

from collections.abc import Sequence

from eval_pipeline.tracks.finqa.conversation import EarlierTurn
from eval_pipeline.tracks.metric import Metric


def right_after_right(numerical_match: bool, turn_before: bool | None) -> bool | None:
    """Whether a turn after a right one is right; None for others."""
    return numerical_match if turn_before is True else None


def right_after_wrong(numerical_match: bool, turn_before: bool | None) -> bool | None:
    """Whether a turn after a wrong one is right; None for others."""
    return numerical_match if turn_before is False else None


def inherited_error(numerical_match: bool, failure_mode: str | None) -> bool | None:
    """Whether a wrong turn is wrong only because an earlier one was; None for right turns."""
    return None if numerical_match else failure_mode == "inherited_error"


def error_propagation(earlier: Sequence[EarlierTurn], failure_mode: str | None) -> bool | None:
    """Whether a turn after some wrong one inherits its error; None where no earlier turn is wrong."""
    if all(turn.is_right for turn in earlier):
        return None
    return failure_mode == "inherited_error"


def first_wrong_turn(numerical_match: bool, turn_index: int, earlier: Sequence[EarlierTurn]) -> int | None:
    """The index of a turn that is the first wrong one of its conversation; None for every other turn."""
    return turn_index if not numerical_match and all(turn.is_right for turn in earlier) else None


METRICS: tuple[Metric, ...] = (
    Metric(
        "right_after_right",
        right_after_right,
        "boolean",
        "The turn is right, of turns straight after a right one; NULL: others.",
        mean_name="accuracy_after_right",
    ),
    Metric(
        "right_after_wrong",
        right_after_wrong,
        "boolean",
        "The turn is right, of turns straight after a wrong one; NULL: others.",
        mean_name="accuracy_after_wrong",
    ),
    Metric(
        "inherited_error",
        inherited_error,
        "boolean",
        "A wrong turn would be right had an earlier one been; NULL: the turn is right.",
    ),
    Metric(
        "error_propagation",
        error_propagation,
        "boolean",
        "A turn after any wrong one inherits its error; NULL: no earlier turn of the conversation is wrong.",
        mean_name="propagation_rate",
    ),
    Metric(
        "first_wrong_turn",
        first_wrong_turn,
        "count",
        "Index of the turn, from 0, where it is the first wrong one of its conversation; NULL: every other turn.",
    ),
)

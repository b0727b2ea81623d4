"""Metrics on how a turn depends on earlier turns of its conversation."""

from collections.abc import Sequence

from eval_pipeline_plugins.tracks.finqa.conversation import EarlierTurn


def right_after_right(numerical_match: bool, turn_before: bool | None) -> bool | None:
    """Whether a turn after a right one is right; None for other turns."""
    return numerical_match if turn_before is True else None


def right_after_wrong(numerical_match: bool, turn_before: bool | None) -> bool | None:
    """Whether a turn after a wrong one is right; None for other turns."""
    return numerical_match if turn_before is False else None


def inherited_error(
    numerical_match: bool, own_earlier: Sequence[EarlierTurn] | None, failure_mode: str | None
) -> bool | None:
    """Whether a wrong turn is wrong only because of an earlier one; None for right turns.

    Also None if the model did not see its own answers, since it cannot have inherited an error then.
    """
    return None if numerical_match or own_earlier is None else failure_mode == "inherited_error"


def error_propagation(own_earlier: Sequence[EarlierTurn] | None, failure_mode: str | None) -> bool | None:
    """Whether a turn that follows a wrong one inherits its error; None if the model saw no wrong answer of its own."""
    if all(turn.is_right for turn in own_earlier or ()):
        return None
    return failure_mode == "inherited_error"


def first_wrong_turn(numerical_match: bool, turn_index: int, earlier: Sequence[EarlierTurn]) -> int | None:
    """Returns the turn's index if it is the first wrong one of its conversation, else None."""
    return turn_index if not numerical_match and all(turn.is_right for turn in earlier) else None

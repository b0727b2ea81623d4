"""What went wrong, in one word."""

from eval_pipeline.tracks.metric import Metric

FAILURE_MODES = (
    "no_answer",
    "execution_error",
    "sign_error",
    "scale_error",
    "wrong_operations",
    "wrong_operands",
    "other",
    "rounding",
)
"""In the order they are tried; `rounding` marks turns that are correct all the same."""


def failure_mode(
    numerical_match: bool,
    exact_match: bool | None,
    no_answer: bool,
    failed: bool,
    sign_agnostic_match: bool,
    unit_agnostic_match: bool,
    logic_recall: float | None,
    operand_recall: float | None,
) -> str | None:
    """The first of `FAILURE_MODES` that applies; None for a correct turn that is no matter of rounding."""
    if numerical_match:
        return "rounding" if exact_match is False else None
    tried = (
        (no_answer, "no_answer"),
        (failed, "execution_error"),
        (sign_agnostic_match, "sign_error"),
        (unit_agnostic_match, "scale_error"),
        (logic_recall is not None and logic_recall < 1, "wrong_operations"),
        (operand_recall is not None and operand_recall < 1, "wrong_operands"),
    )
    return next((mode for applies, mode in tried if applies), "other")


METRIC = Metric(
    "failure_mode",
    failure_mode,
    "label",
    "Why the answer is wrong, first that applies; `rounding` for a correct one; NULL where nothing went wrong.",
)

"""The graded score of a turn."""

from eval_pipeline.tracks.metric import Metric


def partial_credit(logic_f1: float | None, operand_recall: float | None, numerical_match: bool) -> float | None:
    """Returns the mean of logic_f1, operand_recall and numerical_match; None without a parsed plan."""
    if logic_f1 is None or operand_recall is None:
        return None
    return (logic_f1 + operand_recall + numerical_match) / 3


METRIC = Metric(
    "partial_credit",
    partial_credit,
    "score",
    "Mean of logic_f1, operand_recall and numerical_match, 0..1; NULL without a parsed plan.",
)

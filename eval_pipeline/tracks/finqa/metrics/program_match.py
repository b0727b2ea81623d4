"""Algebraic equality of plan and gold program."""

from eval_pipeline.tracks.finqa.algebra import same_expression
from eval_pipeline.tracks.finqa.program import Program
from eval_pipeline.tracks.metric import Metric


def program_match(resolved_plan: Program | None, resolved_gold: Program) -> bool | None:
    """Whether plan and gold program compute the same function of their literals; None without a parsed plan."""
    return None if resolved_plan is None else same_expression(resolved_plan, resolved_gold)


METRIC = Metric(
    "program_match",
    program_match,
    "boolean",
    "Plan and gold program are the same expression up to algebra; NULL without a parsed plan.",
)

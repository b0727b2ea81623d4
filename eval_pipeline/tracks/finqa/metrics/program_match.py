"""Whether the plan is the gold program up to algebra."""

from eval_pipeline.tracks.finqa.algebra import same_expression
from eval_pipeline.tracks.finqa.program import Program
from eval_pipeline.tracks.metric import Metric


def program_match(comparable_program: Program | None, gold_program: Program) -> bool | None:
    """Whether both compute the same function of their literals; None without a parsed plan."""
    return None if comparable_program is None else same_expression(comparable_program, gold_program)


METRIC = Metric(
    "program_match",
    program_match,
    "boolean",
    "Plan and gold program are the same expression up to algebra; NULL without a parsed plan.",
)

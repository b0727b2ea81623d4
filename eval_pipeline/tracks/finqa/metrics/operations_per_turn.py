"""The number of operations in the plan."""

from eval_pipeline.tracks.finqa.program import Program, operations
from eval_pipeline.tracks.metric import Metric


def operations_per_turn(written_program: Program | None) -> int | None:
    """Returns the number of compute steps of the plan as written; None without a parsed plan."""
    return None if written_program is None else len(operations(written_program))


METRIC = Metric(
    "operations_per_turn",
    operations_per_turn,
    "count",
    "Compute steps of the plan as written; NULL without a parsed plan.",
    by_turn_name="avg_operations_by_turn",
)

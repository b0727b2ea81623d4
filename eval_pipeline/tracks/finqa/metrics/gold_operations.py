"""The number of operations in the gold program."""

from eval_pipeline.tracks.finqa.program import Program, operations
from eval_pipeline.tracks.metric import Metric


def gold_operations(gold_program: Program) -> int:
    """Returns the number of operations of the gold program as written."""
    return len(operations(gold_program))


METRIC = Metric(
    "gold_operations",
    gold_operations,
    "count",
    "Operations of the gold program; NULL: not scored.",
)

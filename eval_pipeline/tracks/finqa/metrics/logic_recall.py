"""The share of the gold's operations that the plan has, too."""

from eval_pipeline.tracks.finqa.metrics.overlap import Operations, share, shared_operations
from eval_pipeline.tracks.metric import Metric


def logic_recall(resolved_plan_operations: Operations | None, resolved_gold_operations: Operations) -> float | None:
    """Returns shared operations / gold operations; None without a parsed plan."""
    if resolved_plan_operations is None:
        return None
    shared = shared_operations(resolved_plan_operations, resolved_gold_operations)
    return share(shared, len(resolved_gold_operations), len(resolved_plan_operations))


METRIC = Metric(
    "logic_recall",
    logic_recall,
    "score",
    "Operations shared by plan and gold / gold operations, 0..1; NULL without a parsed plan.",
)

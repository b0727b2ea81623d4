"""The share of the plan's operations that the gold has, too."""

from eval_pipeline.tracks.finqa.metrics.overlap import Operations, share, shared_operations
from eval_pipeline.tracks.metric import Metric


def logic_precision(resolved_plan_operations: Operations | None, resolved_gold_operations: Operations) -> float | None:
    """Returns shared operations / operations of the plan; None without a parsed plan."""
    if resolved_plan_operations is None:
        return None
    shared = shared_operations(resolved_plan_operations, resolved_gold_operations)
    return share(shared, len(resolved_plan_operations), len(resolved_gold_operations))


METRIC = Metric(
    "logic_precision",
    logic_precision,
    "score",
    "Operations shared by plan and gold / operations of the plan, 0..1; NULL without a parsed plan.",
)

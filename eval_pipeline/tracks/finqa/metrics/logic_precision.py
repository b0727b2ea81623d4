"""How much of the plan's logic is the gold's."""

from eval_pipeline.tracks.finqa.metrics.overlap import Operations, share, shared_operations
from eval_pipeline.tracks.metric import Metric


def logic_precision(plan_operation_list: Operations | None, gold_operation_list: Operations) -> float | None:
    """Shared operations / operations of the plan; None without a parsed plan."""
    if plan_operation_list is None:
        return None
    shared = shared_operations(plan_operation_list, gold_operation_list)
    return share(shared, len(plan_operation_list), len(gold_operation_list))


METRIC = Metric(
    "logic_precision",
    logic_precision,
    "score",
    "Operations shared by plan and gold / operations of the plan, 0..1; NULL without a parsed plan.",
)

"""How much of the gold logic the plan has."""

from eval_pipeline.tracks.finqa.metrics.overlap import Operations, share, shared_operations
from eval_pipeline.tracks.metric import Metric


def logic_recall(plan_operation_list: Operations | None, gold_operation_list: Operations) -> float | None:
    """Shared operations / gold operations; None without a parsed plan."""
    if plan_operation_list is None:
        return None
    shared = shared_operations(plan_operation_list, gold_operation_list)
    return share(shared, len(gold_operation_list), len(plan_operation_list))


METRIC = Metric(
    "logic_recall",
    logic_recall,
    "score",
    "Operations shared by plan and gold / gold operations, 0..1; NULL without a parsed plan.",
)

"""Agreement of the order of operations with the gold's."""

from eval_pipeline.tracks.finqa.metrics.overlap import Operations, share
from eval_pipeline.tracks.metric import Metric


def operation_order(resolved_plan_operations: Operations | None, resolved_gold_operations: Operations) -> float | None:
    """Returns the length of the longest common subsequence / gold length; None without a parsed plan."""
    if resolved_plan_operations is None:
        return None
    common = _longest_common_subsequence(resolved_plan_operations, resolved_gold_operations)
    return share(common, len(resolved_gold_operations), len(resolved_plan_operations))


def _longest_common_subsequence(a: Operations, b: Operations) -> int:
    best = [0] * (len(b) + 1)
    for x in a:
        diagonal = 0
        for j, y in enumerate(b, start=1):
            above = best[j]
            best[j] = diagonal + 1 if x == y else max(above, best[j - 1])
            diagonal = above
    return best[-1]


METRIC = Metric(
    "operation_order",
    operation_order,
    "score",
    "Longest common subsequence of the operations / gold length, 0..1; NULL without a parsed plan.",
)

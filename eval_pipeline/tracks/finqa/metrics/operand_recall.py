"""The share of the gold's numbers that the plan uses."""

from collections.abc import Sequence
from math import isclose

from eval_pipeline.tracks.metric import Metric

_NOISE = 1e-9


def operand_recall(
    resolved_plan_literals: Sequence[float] | None, resolved_gold_literals: Sequence[float]
) -> float | None:
    """Returns the share of the gold's distinct literals in the plan; 1.0 if it has none, None without a parsed plan."""
    if resolved_plan_literals is None:
        return None
    if not resolved_gold_literals:
        return 1.0
    return sum(_among(value, resolved_plan_literals) for value in resolved_gold_literals) / len(resolved_gold_literals)


def _among(value: float, literals: Sequence[float]) -> bool:
    return value in literals or any(isclose(value, literal, rel_tol=_NOISE) for literal in literals)


METRIC = Metric(
    "operand_recall",
    operand_recall,
    "score",
    "Share of the gold's literal operands that the plan extracts or uses, 0..1; NULL without a parsed plan.",
)

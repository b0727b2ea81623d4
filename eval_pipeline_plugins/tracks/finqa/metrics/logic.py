"""How much of the gold's calculation the plan has: operations, operands, and the whole expression."""

from collections.abc import Sequence
from math import isclose

from eval_pipeline_plugins.tracks.finqa.programs.algebra import same_expression
from eval_pipeline_plugins.tracks.finqa.programs.program import Program

Operations = Sequence[str]


def shared_operations(plan: Operations, gold: Operations) -> int:
    """Returns the number of operations that the two have in common, ignoring order."""
    return sum(min(plan.count(name), gold.count(name)) for name in set(gold))


def share(part: int, whole: int, other: int) -> float:
    """Returns part / whole; if whole is 0: 1.0 if the other side is empty as well, else 0.0."""
    if whole == 0:
        return 1.0 if other == 0 else 0.0
    return part / whole


def logic_recall(resolved_plan_operations: Operations | None, resolved_gold_operations: Operations) -> float | None:
    """Returns shared operations / gold operations; None without a parsed plan."""
    if resolved_plan_operations is None:
        return None
    shared = shared_operations(resolved_plan_operations, resolved_gold_operations)
    return share(shared, len(resolved_gold_operations), len(resolved_plan_operations))


def logic_precision(resolved_plan_operations: Operations | None, resolved_gold_operations: Operations) -> float | None:
    """Returns shared operations / operations of the plan; None without a parsed plan."""
    if resolved_plan_operations is None:
        return None
    shared = shared_operations(resolved_plan_operations, resolved_gold_operations)
    return share(shared, len(resolved_plan_operations), len(resolved_gold_operations))


def logic_f1(logic_recall: float | None, logic_precision: float | None) -> float | None:
    """Returns the harmonic mean of recall and precision; None without a parsed plan."""
    if logic_recall is None or logic_precision is None:
        return None
    total = logic_recall + logic_precision
    return 2 * logic_recall * logic_precision / total if total else 0.0


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


def program_match(resolved_plan: Program | None, resolved_gold: Program) -> bool | None:
    """Whether plan and gold program compute the same function of their literals; None without a parsed plan."""
    return None if resolved_plan is None else same_expression(resolved_plan, resolved_gold)


def partial_credit(logic_f1: float | None, operand_recall: float | None, numerical_match: bool) -> float | None:
    """Returns the mean of logic_f1, operand_recall and numerical_match; None without a parsed plan."""
    if logic_f1 is None or operand_recall is None:
        return None
    return (logic_f1 + operand_recall + numerical_match) / 3

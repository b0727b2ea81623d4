"""The reasoning metrics on plan and gold program as written, without replacing carried values.

If nothing is carried over, they equal the other metrics, which are reused.
"""

from collections.abc import Sequence

from eval_pipeline_plugins.tracks.finqa.metrics.logic import Operations
from eval_pipeline_plugins.tracks.finqa.metrics.logic import logic_recall as recall_of
from eval_pipeline_plugins.tracks.finqa.metrics.logic import operand_recall as operand_recall_of
from eval_pipeline_plugins.tracks.finqa.programs.algebra import same_expression
from eval_pipeline_plugins.tracks.finqa.programs.program import Program


def program_match_as_written(
    plan_program: Program | None,
    gold_program: Program,
    resolved_plan: Program | None,
    resolved_gold: Program,
    program_match: bool | None,
) -> bool | None:
    """Returns `program_match` for plan and gold program as written."""
    if plan_program is None or (plan_program is resolved_plan and gold_program is resolved_gold):
        return program_match
    return same_expression(plan_program, gold_program)


def logic_recall_as_written(
    plan_operation_list: Operations | None,
    gold_operation_list: Operations,
    resolved_plan_operations: Operations | None,
    resolved_gold_operations: Operations,
    logic_recall: float | None,
) -> float | None:
    """Returns `logic_recall` for plan and gold program as written."""
    if plan_operation_list is resolved_plan_operations and gold_operation_list is resolved_gold_operations:
        return logic_recall
    return recall_of(plan_operation_list, gold_operation_list)


def operand_recall_as_written(
    plan_literals: Sequence[float] | None,
    gold_literals: Sequence[float],
    resolved_plan_literals: Sequence[float] | None,
    resolved_gold_literals: Sequence[float],
    operand_recall: float | None,
) -> float | None:
    """Returns `operand_recall` for plan and gold program as written."""
    if plan_literals is resolved_plan_literals and gold_literals is resolved_gold_literals:
        return operand_recall
    return operand_recall_of(plan_literals, gold_literals)

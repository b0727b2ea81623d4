"""Numbers of operations and steps."""

from eval_pipeline_plugins.tracks.finqa.programs.program import Program, operations


def operations_per_turn(written_program: Program | None) -> int | None:
    """Returns the number of compute steps of the plan as written; None without a parsed plan."""
    return None if written_program is None else len(operations(written_program))


def gold_operations(gold_program: Program) -> int:
    """Returns the number of operations of the gold program as written."""
    return len(operations(gold_program))


def plan_steps(written_program: Program | None) -> int | None:
    """Returns the number of steps of the plan, extractions included; None without a parsed plan."""
    return None if written_program is None else len(written_program.steps)

"""Plan and gold program with carried values replaced, and guessed plans, as text."""

from eval_pipeline_plugins.tracks.finqa.mistakes.carried import program_text
from eval_pipeline_plugins.tracks.finqa.programs.program import Program


def resolved_plan_text(plan_program: Program | None, resolved_plan: Program | None) -> str | None:
    """Returns the plan with carried values replaced, in FinQA's form; None if it has none."""
    return None if resolved_plan is None or resolved_plan is plan_program else program_text(resolved_plan)


def resolved_program_text(gold_program: Program, resolved_gold: Program) -> str | None:
    """Returns the gold program with carried values replaced, in FinQA's form; None if it has none."""
    return None if resolved_gold is gold_program else program_text(resolved_gold)


def guessed_plan_text(guessed_plan: Program | None) -> str | None:
    """Returns the calculation found for an answer that shows none, in FinQA's form; None if there is none."""
    return None if guessed_plan is None else program_text(guessed_plan)

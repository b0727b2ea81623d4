"""The length of the plan."""

from eval_pipeline.tracks.finqa.program import Program
from eval_pipeline.tracks.metric import Metric


def plan_steps(written_program: Program | None) -> int | None:
    """Returns the number of steps of the plan, extractions included; None without a parsed plan."""
    return None if written_program is None else len(written_program.steps)


METRIC = Metric("plan_steps", plan_steps, "count", "Steps of the plan; NULL without a parsed plan.")

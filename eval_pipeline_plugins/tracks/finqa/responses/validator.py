"""The plan validator: checks a plan before it runs."""

from eval_pipeline.core.model import Json
from eval_pipeline.core.numbers import number_text
from eval_pipeline.tracks.base import ArtefactError, ValidationRow
from eval_pipeline_plugins.tracks.finqa.cases.document import Document, FinqaCase
from eval_pipeline_plugins.tracks.finqa.programs.execute import step_problems
from eval_pipeline_plugins.tracks.finqa.programs.lookup import resolved
from eval_pipeline_plugins.tracks.finqa.programs.program import (
    OPERATIONS,
    READING,
    Program,
    StepReference,
    literal_values,
)
from eval_pipeline_plugins.tracks.finqa.responses.plan import FinqaPlan

_NO_RESPONSE = "there is no response"


def validate_plan(plan: FinqaPlan | None, error: ArtefactError | None, case: FinqaCase) -> ValidationRow:
    """Checks a plan against its document.

    `invalid`: it cannot run, whatever the numbers. `suspicious`: it runs, but uses numbers that are not in the
    document, or a recorded calculation could not be parsed.
    """
    if plan is None:
        message = _NO_RESPONSE if error is None else error.message
        return ValidationRow(False, "invalid", _checks(0, [], [], []), (message,))
    if plan.program is None:
        return ValidationRow(False, "suspicious", _checks(0, [], [], []), (plan.problem or _NO_RESPONSE,))
    document: Document = case.context
    program = resolved(plan.program, document.table)
    unknown, dangling, problems = _step_findings(program)
    unfound = [value for value in literal_values(program) if not document.has(value)]
    checks = _checks(len(program.steps), unknown, dangling, unfound)
    # a recorded answer is the prediction itself; its plan is parsed but never run
    if problems and plan.form != "recorded":
        return ValidationRow(True, "invalid", checks, tuple(problems))
    problems += [f"{number_text(value)} is nowhere in the document" for value in unfound]
    return ValidationRow(True, "suspicious" if problems else "valid", checks, tuple(problems))


def _step_findings(program: Program) -> tuple[list[str], list[str], list[str]]:
    unknown: list[str] = []
    dangling: list[str] = []
    problems: list[str] = []
    for index, step in enumerate(program.steps):
        found = step_problems(step, index)
        if not found:
            continue
        problems += found
        if step.operation not in READING and step.operation not in OPERATIONS:
            unknown.append(step.operation)
        dangling += [f"#{a.step}" for a in step.arguments if isinstance(a, StepReference) and a.step >= index]
    return unknown, dangling, problems


def _checks(steps: int, unknown: list[str], dangling: list[str], unfound: list[float]) -> dict[str, Json]:
    return {
        "steps": steps,
        "unknown_operations": unknown,
        "dangling_references": dangling,
        "operands_not_found": unfound,
    }

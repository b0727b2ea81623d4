"""The track's artefact: a plan, and its JSON form."""

from typing import Literal as OneOf

from eval_pipeline.answers.printed import Number
from eval_pipeline.core.model import Json
from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.finqa.programs.program import (
    EXTRACT,
    LOOKUP,
    TABLE_OPERATIONS,
    Argument,
    Constant,
    Label,
    Literal,
    Program,
    ProgramStep,
    StepReference,
    read_argument,
)

_HUNDRED = Constant("const_100", 100.0)

Form = OneOf["plan", "calculation", "program", "recorded"]


@value
class FinqaPlan:
    """The parsed content of a response.

    Attributes:
        form: the form in which it was given.
        program: executed, or (for recorded answers) used only for reasoning metrics; None if a recorded calculation
            cannot be parsed.
        answer: the prediction itself, only for recorded answers.
        problem: why a recorded calculation could not be parsed.
        magnitude: factor given by a word of the answer, e.g. 1e6 for "million"; else 1.
        in_percent: whether the recorded calculation's result is in percent and must be divided by 100 for comparison.
    """

    form: Form
    program: Program | None
    answer: Number | str | None = None
    problem: str | None = None
    magnitude: float = 1.0
    in_percent: bool = False


def comparable(program: Program, in_percent: bool) -> Program:
    """Returns a program in the unit of gold programs, which are never in percent."""
    if not in_percent:
        return program
    steps = program.steps
    if len(steps) == 1 and steps[0].operation == EXTRACT:
        return Program((ProgramStep("divide", (steps[0].arguments[0], _HUNDRED)),))
    return Program((*steps, ProgramStep("divide", (StepReference(len(steps) - 1), _HUNDRED))))


def plan_json(plan: FinqaPlan) -> dict[str, Json]:
    """Returns the plan as JSON for the record; `plan_from_json` restores it."""
    value: dict[str, Json] = {"form": plan.form}
    if plan.program is not None:
        value["plan"] = [_step_json(step) for step in plan.program.steps]
    if isinstance(plan.answer, str):
        value["answer"] = plan.answer
    elif plan.answer is not None:
        answer = plan.answer
        value["answer"] = {"value": answer.value, "percent": answer.percent, "decimals": answer.decimals}
    if plan.problem is not None:
        value["problem"] = plan.problem
    if plan.magnitude != 1:
        value["magnitude"] = plan.magnitude
    if plan.in_percent:
        value["in_percent"] = True
    return value


def plan_from_json(value: Json) -> FinqaPlan:
    """Restores a plan from `plan_json`."""
    answer = value.get("answer")
    if isinstance(answer, dict):
        answer = Number(float(answer["value"]), answer["percent"], answer["decimals"])
    steps = value.get("plan")
    program = None if steps is None else Program(tuple([_step_from_json(step) for step in steps]))
    magnitude, in_percent = float(value.get("magnitude", 1)), bool(value.get("in_percent", False))
    return FinqaPlan(value["form"], program, answer, value.get("problem"), magnitude, in_percent)


def _step_json(step: ProgramStep) -> dict[str, Json]:
    if step.operation == EXTRACT:
        extract: dict[str, Json] = {"tool": "extract", "value": _argument_json(step.arguments[0])}
        return {**extract, "source": step.source} if step.source else extract
    arguments = [_argument_json(argument) for argument in step.arguments]
    if step.operation == LOOKUP:
        return {"tool": LOOKUP, "row": arguments[0], "column": arguments[1]}
    return {"tool": "compute", "operation": step.operation, "args": arguments}


def _argument_json(argument: Argument) -> Json:
    if isinstance(argument, Literal):
        return {"value": argument.value, "percent": True} if argument.percent else argument.value
    if isinstance(argument, StepReference):
        return f"#{argument.step}"
    return argument.name if isinstance(argument, Constant) else argument.text


def _step_from_json(raw: Json) -> ProgramStep:
    if raw["tool"] == "extract":
        return ProgramStep(EXTRACT, (_argument_from_json(raw["value"]),), raw.get("source", ""))
    if raw["tool"] == LOOKUP:
        return ProgramStep(LOOKUP, (Label(raw["row"]), Label(raw["column"])))
    operation, arguments = raw["operation"], raw["args"]
    if operation in TABLE_OPERATIONS:  # a row named by a year is a label, not a number
        return ProgramStep(
            operation, tuple([Label(a) if isinstance(a, str) else _argument_from_json(a) for a in arguments])
        )
    return ProgramStep(operation, tuple([_argument_from_json(argument) for argument in arguments]))


def _argument_from_json(raw: Json) -> Argument:
    if isinstance(raw, str):
        return read_argument(raw)
    return Literal(float(raw["value"]), True) if isinstance(raw, dict) else Literal(float(raw))

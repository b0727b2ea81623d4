"""Checks the gold, and converts it to a right response."""

import json

from eval_pipeline.core.model import Failed, Json
from eval_pipeline.core.numbers import number_text
from eval_pipeline_plugins.tracks.finqa.cases.document import FinqaGold
from eval_pipeline_plugins.tracks.finqa.programs.execute import run_program
from eval_pipeline_plugins.tracks.finqa.programs.matching import answers_match
from eval_pipeline_plugins.tracks.finqa.programs.program import (
    EXTRACT,
    Argument,
    Constant,
    Literal,
    Program,
    StepReference,
)


def gold_problem(gold: FinqaGold) -> str | None:
    """Returns why the gold program does not give the gold answer; None if it does."""
    outcome = run_program(gold.program, gold.table)
    if isinstance(outcome, Failed):
        return f"the program '{gold.program_text}' does not run: {outcome.message}"
    value = outcome.value.get("text", outcome.value.get("value"))
    if answers_match(value, gold.expected):
        return None
    given = value if isinstance(value, str) else number_text(value)
    return f"the program '{gold.program_text}' gives {given}, the answer is {gold.expected_text()}"


def gold_response(gold: FinqaGold) -> str:
    """Returns a plan that extracts the program's literals and computes the same, as a model would write it."""
    return response_text(gold_steps(gold.program))


def response_text(steps: list[dict[str, Json]]) -> str:
    """Returns steps as a response."""
    return json.dumps({"plan": steps})


def gold_steps(program: Program) -> list[dict[str, Json]]:
    """Returns the steps of a program, preceded by one extraction for each literal."""
    if program.steps[-1].operation == EXTRACT:
        return [_extract(argument) for step in program.steps for argument in step.arguments]
    places: dict[Literal, int] = {}
    for step in program.steps:
        for argument in step.arguments:
            if isinstance(argument, Literal):
                places.setdefault(argument, len(places))
    steps = [_extract(literal) for literal in places]
    for step in program.steps:
        arguments = [_argument(argument, places) for argument in step.arguments]
        steps.append({"tool": "compute", "operation": step.operation, "args": arguments})
    return steps


def _extract(argument: Argument) -> dict[str, Json]:
    value: Json = ""
    if isinstance(argument, Literal):
        value = f"{argument.value * 100:.12g}%" if argument.percent else argument.value
    return {"tool": "extract", "value": value, "source": "document"}


def _argument(argument: Argument, places: dict[Literal, int]) -> str:
    if isinstance(argument, StepReference):
        return f"#{argument.step + len(places)}"
    if isinstance(argument, Literal):
        return f"#{places[argument]}"
    return argument.name if isinstance(argument, Constant) else argument.text

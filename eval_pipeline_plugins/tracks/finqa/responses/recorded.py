"""Answers recorded elsewhere: conversion of prediction rows to responses, and parsing them."""

from collections.abc import Mapping

from eval_pipeline.answers.printed import Number
from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.model import ErrorClass, Json
from eval_pipeline.core.numbers import normalised_text
from eval_pipeline.core.reading.complaints import told_value
from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline_plugins.tracks.finqa.cases.document import FinqaGold
from eval_pipeline_plugins.tracks.finqa.programs.execute import NO, YES, StepError, evaluate
from eval_pipeline_plugins.tracks.finqa.programs.program import Program
from eval_pipeline_plugins.tracks.finqa.responses.calculation import CalculationError
from eval_pipeline_plugins.tracks.finqa.responses.dsl import read_calculation
from eval_pipeline_plugins.tracks.finqa.responses.plan import FinqaPlan
from eval_pipeline_plugins.tracks.finqa.responses.prose import read_answer

RECORDED = "recorded_answer"
NO_CALCULATION = "no calculation was recorded"
REASONING = (
    *("logic_recall", "logic_precision", "logic_f1", "operation_order", "operand_recall", "program_match"),
    *("partial_credit", "operations_per_turn", "plan_steps"),
)
"""Metrics that are NULL without a calculation, read or guessed."""
AS_WRITTEN = ("operations_per_turn", "plan_steps")
"""Those that are NULL for a guessed calculation, too."""
_MAX_TEXT = 300
_AGREES = 0.01


def recorded_response(row: Mapping[str, Json]) -> str | dict[str, Json]:
    """Returns the response in a row of recorded predictions.

    It is the row's own text, or its answer in a form that `parse_plan` knows.

    Raises:
        ValueError: with one sentence.
    """
    response = row.get("response")
    if isinstance(response, str):
        return response
    if response is not None:
        raise ValueError(f"'response' must be text, found {told_value(response)}")
    if "answer" not in row:
        raise ValueError("a prediction needs 'response' or 'answer'")
    answer, unit, calculation = row["answer"], row.get("unit"), row.get("calculation")
    if answer is None or (isinstance(answer, str) and not answer.strip()):
        return ""
    if isinstance(answer, bool) or not isinstance(answer, (str, int, float)):
        raise ValueError(f"'answer' must be text or a number, found {told_value(answer)}")
    for name, text in (("unit", unit), ("calculation", calculation)):
        if text is not None and not isinstance(text, str):
            raise ValueError(f"'{name}' must be text, found {told_value(text)}")
    return {RECORDED: {"answer": str(answer), "unit": unit, "calculation": calculation}}


def as_given(text: str) -> str:
    """Returns the answer in a response made by `recorded_response`; other texts are returned unchanged."""
    if not text.startswith(f'{{"{RECORDED}":'):
        return text
    told = parse_json(text)[RECORDED]
    return " ".join(filter(None, [told["answer"], told["unit"]]))


def not_comparable(gold: FinqaGold, plan: FinqaPlan) -> str | None:
    """Returns why a recorded answer cannot be compared with the gold: it is not a number, but one is expected."""
    if isinstance(plan.answer, str) and not isinstance(gold.expected, str):
        return "the answer is read as no number, and the expected one is a number"
    return None


def read_recorded(raw: Json) -> FinqaPlan:
    """Returns the plan of a recorded answer.

    The answer is the prediction; the calculation is used for reasoning metrics.

    Raises:
        ArtefactError: it was not made by `recorded_response`, or is ambiguous.
    """
    if not isinstance(raw, dict) or not isinstance(raw.get("answer"), str):
        raise ArtefactError(ErrorClass.VALUE, f"'{RECORDED}' must hold 'answer', a text")
    unit, calculation = raw.get("unit"), raw.get("calculation")
    answer, magnitude = _answer(raw["answer"])
    number = None if isinstance(answer, str) else answer
    percent = isinstance(unit, str) and unit.strip().lower() == "percent"
    if number is not None and percent and not number.percent:
        answer = Number(number.value / 100, True, number.decimals)
    if not isinstance(calculation, str) or not calculation.strip():
        return FinqaPlan("recorded", None, answer, NO_CALCULATION, magnitude)
    try:
        program = read_calculation(calculation)
    except CalculationError as error:
        return FinqaPlan("recorded", None, answer, str(error), magnitude)
    in_percent = percent and number is not None and _agrees(program, number)
    return FinqaPlan("recorded", program, answer, None, magnitude, in_percent)


def said_answer(text: str) -> FinqaPlan:
    """Returns the plan for a recorded response that is an answer in words.

    Raises:
        ArtefactError: it is ambiguous, or not an answer.
    """
    answer, magnitude = _answer(text)
    if isinstance(answer, str) and normalised_text(answer) not in (YES, NO):
        raise ArtefactError(ErrorClass.VALUE, f"the answer '{answer[:80]}' is neither a number nor yes or no")
    return FinqaPlan("recorded", None, answer, NO_CALCULATION, magnitude)


def _answer(text: str) -> tuple[Number | str, float]:
    """Returns the answer, and the magnitude given by its words. Raises ArtefactError."""
    try:
        answer = read_answer(text)
    except ValueError as error:
        raise ArtefactError(ErrorClass.VALUE, str(error)) from None
    return (answer.strip()[:_MAX_TEXT], 1.0) if isinstance(answer, str) else (answer.number, answer.magnitude)


def _agrees(program: Program, number: Number) -> bool:
    """Whether the calculation gives the answer as written, i.e. in percent."""
    try:
        value = evaluate(program, ())
    except StepError:
        return False
    unscaled = number.value * 100 if number.percent else number.value
    return not isinstance(value, str) and abs(value - unscaled) <= _AGREES * abs(unscaled)

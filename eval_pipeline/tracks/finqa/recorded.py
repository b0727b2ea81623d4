"""Answers recorded elsewhere: rows of predictions, and reading them back."""

from collections.abc import Mapping

from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.model import ErrorClass, Json
from eval_pipeline.core.numbers import Number, parse_number
from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline.tracks.finqa.calculation import CalculationError, parse_calculation
from eval_pipeline.tracks.finqa.document import FinqaGold
from eval_pipeline.tracks.finqa.execute import StepError, evaluate
from eval_pipeline.tracks.finqa.plan import FinqaPlan
from eval_pipeline.tracks.finqa.program import EXTRACT, Constant, Program, ProgramStep, StepReference

RECORDED = "recorded_answer"
NO_CALCULATION = "no calculation was recorded"
REASONING: tuple[str, ...] = (
    "logic_recall",
    "logic_precision",
    "logic_f1",
    "operation_order",
    "operand_recall",
    "program_match",
)
REASONING += ("partial_credit", "operations_per_turn", "plan_steps")
"""Metrics that are NULL without a calculation that can be read."""
_MAX_TEXT = 300
_AGREES = 0.01
_HUNDRED = Constant("const_100", 100.0)


def recorded_response(row: Mapping[str, Json]) -> str | dict[str, Json]:
    """The response in a row of recorded predictions: its own text, or its answer in the form `parse_plan` knows.

    Raises:
        ValueError: one sentence.
    """
    response = row.get("response")
    if isinstance(response, str):
        return response
    if response is not None:
        raise ValueError(f"'response' must be text, found {type(response).__name__}")
    if "answer" not in row:
        raise ValueError("a prediction needs 'response' or 'answer'")
    answer, unit, calculation = row["answer"], row.get("unit"), row.get("calculation")
    if answer is None or (isinstance(answer, str) and not answer.strip()):
        return ""
    if isinstance(answer, bool) or not isinstance(answer, (str, int, float)):
        raise ValueError(f"'answer' must be text or a number, found {type(answer).__name__}")
    for name, text in (("unit", unit), ("calculation", calculation)):
        if text is not None and not isinstance(text, str):
            raise ValueError(f"'{name}' must be text, found {type(text).__name__}")
    return {RECORDED: {"answer": str(answer), "unit": unit, "calculation": calculation}}


def as_given(text: str) -> str:
    """The answer itself in the text of a response that `recorded_response` made; other texts as they are."""
    if not text.startswith(f'{{"{RECORDED}":'):
        return text
    told = parse_json(text)[RECORDED]
    return " ".join(filter(None, [told["answer"], told["unit"]]))


def not_comparable(gold: FinqaGold, plan: FinqaPlan) -> str | None:
    """Why a recorded answer cannot be compared with the gold: it has no number where one is expected."""
    if isinstance(plan.answer, str) and not isinstance(gold.expected, str):
        return "the answer is read as no number, and the expected one is a number"
    return None


def read_recorded(raw: Json) -> FinqaPlan:
    """The plan of a recorded answer: the answer is the prediction, the calculation is for the reasoning columns.

    Raises:
        ArtefactError: where it is not what `recorded_response` makes.
    """
    if not isinstance(raw, dict) or not isinstance(raw.get("answer"), str):
        raise ArtefactError(ErrorClass.VALUE, f"'{RECORDED}' must hold 'answer', a text")
    printed, unit, calculation = raw["answer"], raw.get("unit"), raw.get("calculation")
    number = parse_number(printed)
    percent = isinstance(unit, str) and unit.strip().lower() == "percent"
    answer: Number | str = printed.strip()[:_MAX_TEXT] if number is None else number
    if number is not None and percent and not number.percent:
        answer = Number(number.value / 100, True, number.decimals)
    if not isinstance(calculation, str) or not calculation.strip():
        return FinqaPlan("recorded", None, answer, NO_CALCULATION)
    try:
        program = parse_calculation(calculation)
    except CalculationError as error:
        return FinqaPlan("recorded", None, answer, str(error))
    if percent and number is not None and _agrees(program, number):
        program = _in_hundredths(program)
    return FinqaPlan("recorded", program, answer)


def _agrees(program: Program, number: Number) -> bool:
    """Whether the calculation gives the answer as it was written, in percent."""
    try:
        value = evaluate(program, ())
    except StepError:
        return False
    unscaled = number.value * 100 if number.percent else number.value
    return not isinstance(value, str) and abs(value - unscaled) <= _AGREES * abs(unscaled)


def _in_hundredths(program: Program) -> Program:
    steps = program.steps
    if len(steps) == 1 and steps[0].operation == EXTRACT:
        return Program((ProgramStep("divide", (steps[0].arguments[0], _HUNDRED)),))
    return Program((*steps, ProgramStep("divide", (StepReference(len(steps) - 1), _HUNDRED))))

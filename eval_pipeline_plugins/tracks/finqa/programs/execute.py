"""The interpreter: runs a program step by step; the last value is the answer."""

from collections.abc import Sequence
from math import fsum, isfinite, prod

from eval_pipeline.answers.printed import printed_number
from eval_pipeline.core.model import ErrorClass, Failed, Json, Outcome, Ran
from eval_pipeline.core.numbers import normalised_text
from eval_pipeline_plugins.tracks.finqa.programs.lookup import labels, look_up
from eval_pipeline_plugins.tracks.finqa.programs.program import (
    BINARY_OPERATIONS,
    EXTRACT,
    FOLDING_OPERATIONS,
    LOOKUP,
    OPERATIONS,
    TABLE_OPERATIONS,
    Constant,
    Label,
    Literal,
    Program,
    ProgramStep,
    StepReference,
)

Value = float | str
Table = Sequence[Sequence[str | int | float]]
YES, NO = "yes", "no"


class StepError(Exception):
    """A step cannot run; the message says what to correct."""


def run_program(program: Program, table: Table) -> Outcome:
    """Runs a program with the document's table."""
    try:
        value = evaluate(program, table)
    except StepError as error:
        return Failed(ErrorClass.VALUE, str(error))
    return Ran(result_json(value, answers_in_percent(program)))


def result_json(value: Value, percent: bool) -> Json:
    """Returns the JSON result of an attempt: `{"value": 0.25, "percent": true}` or `{"text": "yes"}`."""
    return {"text": value} if isinstance(value, str) else {"value": value, "percent": percent}


def answers_in_percent(program: Program) -> bool:
    """Whether the answer is a number read with a percent sign; computed answers have none."""
    last = program.steps[-1]
    if last.operation != EXTRACT:
        return False
    argument = last.arguments[0]
    return isinstance(argument, Literal) and argument.percent


def evaluate(program: Program, table: Table) -> Value:
    """Returns the value of the last step. Raises StepError."""
    if not program.steps:
        raise StepError("the plan is empty")
    values: list[Value] = []
    for index, step in enumerate(program.steps):
        for problem in step_problems(step, index):
            raise StepError(problem)
        value = _step_value(step, index, values, table)
        if not isinstance(value, str) and not isfinite(value):
            raise StepError(f"step {index}: {step.operation} does not give a finite number")
        values.append(value)
    return values[-1]


def step_problems(step: ProgramStep, index: int) -> list[str]:
    """Returns the problems of a step that do not depend on values; a step with problems cannot run."""
    name, arguments = step.operation, step.arguments
    if name == EXTRACT:
        first = arguments[0]
        if isinstance(first, Label) and normalised_text(first.text) not in (YES, NO):
            return [f"step {index}: extract needs one number (or yes or no), not '{first.text[:60]}'"]
        return []
    if name == LOOKUP:
        return []
    if name not in OPERATIONS:
        return [f"step {index}: unknown operation '{name[:40]}'; use one of {', '.join(sorted(OPERATIONS))}"]
    if name in TABLE_OPERATIONS:
        if len(arguments) != 1 or not isinstance(arguments[0], Label):
            return [f"step {index}: {name} takes the label of one table row"]
        return []
    return _argument_problems(step, index)


def _argument_problems(step: ProgramStep, index: int) -> list[str]:
    name, arguments = step.operation, step.arguments
    problems: list[str] = []
    if name in BINARY_OPERATIONS and len(arguments) != 2:
        problems.append(f"step {index}: {name} takes two arguments, found {len(arguments)}")
    elif not arguments:
        problems.append(f"step {index}: {name} has no arguments")
    for argument in arguments:
        if isinstance(argument, StepReference):
            if argument.step >= index:
                problems.append(f"step {index}: {_dangling(argument, index)}")
        elif isinstance(argument, Label):
            problems.append(f"step {index}: '{argument.text[:60]}' is not a number, a reference #k or a const_k")
    return problems


def _dangling(reference: StepReference, index: int) -> str:
    """Returns a sentence on a reference that does not point to an earlier step."""
    known = f"the earlier steps are #0 to #{index - 1}" if index else "there is no step before it"
    return f"#{reference.step} is not the result of an earlier step; {known}"


def _step_value(step: ProgramStep, index: int, values: list[Value], table: Table) -> Value:
    name, arguments = step.operation, step.arguments
    if name in TABLE_OPERATIONS:
        label = arguments[0]
        return over_row(name, label.text if isinstance(label, Label) else "", table, index)
    if name == EXTRACT and isinstance(arguments[0], Label):
        return normalised_text(arguments[0].text)
    if name == LOOKUP:
        try:
            return look_up(table, *labels(step)).value
        except ValueError as error:
            raise StepError(f"step {index}: {error}") from None
    numbers = _numbers(step, index, values)
    return numbers[0] if name == EXTRACT else apply_operation(name, numbers, index)


def apply_operation(name: str, numbers: list[float], index: int = 0) -> Value:
    """Applies an operation on numbers; `index` is the step named in messages.

    Raises:
        StepError: division by zero, or no real result.
    """
    if name in FOLDING_OPERATIONS:
        return _fold(name, numbers)
    return _binary(name, numbers[0], numbers[1], index)


def _numbers(step: ProgramStep, index: int, values: list[Value]) -> list[float]:
    numbers: list[float] = []
    for argument in step.arguments:
        if isinstance(argument, (Literal, Constant)):
            numbers.append(argument.value)
        elif isinstance(argument, StepReference):
            value = values[argument.step]
            if isinstance(value, str):
                raise StepError(f"step {index}: {step.operation} needs numbers, but #{argument.step} is '{value}'")
            numbers.append(value)
    return numbers


def _fold(name: str, numbers: list[float]) -> float:
    if name in ("multiply", "product"):
        return prod(numbers)
    try:
        total = fsum(numbers) if len(numbers) > 2 else sum(numbers)
    except OverflowError:
        return float("inf")
    return total / len(numbers) if name == "average" else total


def _binary(name: str, a: float, b: float, index: int) -> Value:
    if name in ("subtract", "difference"):
        return a - b
    if name == "greater":
        return YES if a > b else NO
    if name == "exp":
        return _power(a, b, index)
    if b == 0:
        raise StepError(f"step {index}: {name} divides by zero")
    # the new value comes first: percentage_change(120, 100) is 0.2
    return (a - b) / b if name == "percentage_change" else a / b


def _power(a: float, b: float, index: int) -> float:
    try:
        value = a**b
    except ZeroDivisionError:
        raise StepError(f"step {index}: exp of zero to a negative power divides by zero") from None
    except OverflowError:
        raise StepError(f"step {index}: exp does not give a finite number") from None
    if isinstance(value, complex):
        raise StepError(f"step {index}: exp of a negative number to a broken power is not a real number")
    return float(value)


def over_row(name: str, label: str, table: Table, index: int = 0) -> float:
    """Applies a `table_*` operation to the row with that label.

    Raises:
        StepError: there is no such row, or no number in it.
    """
    wanted = normalised_text(label)
    row = next((row for row in table if row and normalised_text(str(row[0])) == wanted), None)
    if row is None:
        labels = ", ".join(f"'{str(row[0])[:40]}'" for row in table[1:9] if row)
        raise StepError(f"step {index}: the table has no row '{label[:60]}'; rows: {labels or 'none'}")
    cells = map(cell_number, row[1:])
    numbers = [cell for cell in cells if cell is not None]
    if not numbers:
        raise StepError(f"step {index}: the row '{label[:60]}' holds no numbers")
    if name == "table_max":
        return max(numbers)
    if name == "table_min":
        return min(numbers)
    return _fold("average" if name == "table_average" else "sum", numbers)


def cell_number(cell: str | int | float) -> float | None:
    """Returns the number in a table cell; None if there is none."""
    if not isinstance(cell, str):
        return float(cell)
    number = printed_number(cell)
    return None if number is None else number.value

"""Makes mutants of a gold program, and determines which of them the turn's answer distinguishes from it.

A mutant is the program with one slip: operands in the other order, another operation, another named constant, a number
read from a neighbouring cell of the table, another row of the table, or the last step left out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from eval_pipeline.answers.printed import printed_number
from eval_pipeline.core.model import Failed
from eval_pipeline.core.numbers import number_text
from eval_pipeline.tracks.scored.mutation_score import Survivor, TurnMutants
from eval_pipeline_plugins.tracks.finqa.cases.document import FinqaGold, FinqaTurn
from eval_pipeline_plugins.tracks.finqa.programs.execute import Table, run_program
from eval_pipeline_plugins.tracks.finqa.programs.matching import answers_match
from eval_pipeline_plugins.tracks.finqa.programs.program import (
    EXTRACT,
    TABLE_OPERATIONS,
    Argument,
    Constant,
    Label,
    Literal,
    Program,
    ProgramStep,
    StepReference,
)

_ORDERED = frozenset({"subtract", "divide", "exp", "greater"})
_OTHER_OPERATION: Mapping[str, str] = {
    "add": "subtract",
    "subtract": "add",
    "multiply": "divide",
    "divide": "multiply",
    "table_max": "table_min",
    "table_min": "table_max",
    "table_sum": "table_average",
    "table_average": "table_sum",
}
_THOUSANDFOLD = 1000.0


def turn_mutants_score(turn: FinqaTurn) -> TurnMutants | None:
    """Returns which mutants of the gold program give the same answer by the rule of `numerical_match`.

    A mutant that does not run counts as distinguished. Returns None if the gold program does not give the gold answer.
    """
    gold = turn.gold
    if not _is_right(gold, gold.program):
        return None
    found = [*program_mutants(gold.program, gold.table)]
    survivors = [Survivor(words, {}) for words, program in found if _is_right(gold, program)]
    return TurnMutants(turn.id, len(found), survivors)


def program_mutants(program: Program, table: Table) -> Iterator[tuple[str, Program]]:
    """Yields mutants of a program, each once, with a description of the change that can follow "as if".

    Args:
        program: a program that runs.
        table: the table of the document.
    """
    seen = {program}
    for words, mutant in _mutants(program, table):
        if mutant not in seen:
            seen.add(mutant)
            yield words, mutant


def _mutants(program: Program, table: Table) -> Iterator[tuple[str, Program]]:
    steps = program.steps
    for index, step in enumerate(steps):
        for changed in _changed_steps(step, table):
            yield f"`{_text(step)}` were `{_text(changed)}`", Program((*steps[:index], changed, *steps[index + 1 :]))
    if len(steps) > 1:
        yield f"`{_text(steps[-1])}` were missing", Program(steps[:-1])


def _changed_steps(step: ProgramStep, table: Table) -> Iterator[ProgramStep]:
    first, *rest = step.arguments
    if step.operation in _ORDERED:
        yield replace(step, arguments=(*rest, first))
    if (other := _OTHER_OPERATION.get(step.operation)) is not None:
        yield replace(step, operation=other)
    for place, argument in enumerate(step.arguments):
        for by in _other_arguments(step, argument, table):
            yield replace(step, arguments=(*step.arguments[:place], by, *step.arguments[place + 1 :]))


def _other_arguments(step: ProgramStep, argument: Argument, table: Table) -> Iterator[Argument]:
    match argument:
        case Constant(name=name, value=value):
            scale = _THOUSANDFOLD if abs(value) < _THOUSANDFOLD else 1 / _THOUSANDFOLD
            other = value * scale
            prefix = name[: len("const_m")] if name.startswith("const_m") else "const_"
            yield Constant(f"{prefix}{number_text(abs(other))}", other)
        case StepReference(step=number) if number:
            yield StepReference(number - 1)
        case Literal():
            yield from _neighbours(argument, table)
        case Label(text=label) if step.operation in TABLE_OPERATIONS:
            # The first row names the columns.
            rows = [str(row[0]) for row in table[1:] if row and str(row[0])]
            if label in rows:
                place = rows.index(label)
                yield from (Label(row) for row in (rows[place + 1 :] + rows[:place][::-1])[:1])


def _neighbours(literal: Literal, table: Table) -> Iterator[Literal]:
    """Yields the numbers beside and below the first cell with the number, or above it in the last row."""
    cells = [[_number(cell) for cell in row] for row in table]
    for row, numbers in enumerate(cells):
        for column, found in enumerate(numbers):
            if found is None or abs(found.value) != abs(literal.value):
                continue
            beside = [numbers[place] for place in (column + 1, column - 1) if 0 < place < len(numbers)]
            other_rows = [cells[place] for place in (row + 1, row - 1) if 0 < place < len(cells)]
            down = [line[column] for line in other_rows if column < len(line)]
            for group in (beside, down):
                yield from [one for one in group if one is not None and abs(one.value) != abs(found.value)][:1]
            return


def _number(cell: str | int | float) -> Literal | None:
    number = printed_number(str(cell))
    return None if number is None else Literal(number.value, number.percent)


def _is_right(gold: FinqaGold, program: Program) -> bool:
    outcome = run_program(program, gold.table)
    if isinstance(outcome, Failed):
        return False
    return answers_match(outcome.value.get("text", outcome.value.get("value")), gold.expected)


def _text(step: ProgramStep) -> str:
    """Returns a step in FinQA's form."""
    arguments = ", ".join(map(_argument, step.arguments))
    return arguments if step.operation == EXTRACT else f"{step.operation}({arguments})"


def _argument(argument: Argument) -> str:
    match argument:
        case StepReference(step=number):
            return f"#{number}"
        case Literal(value=value, percent=percent):
            return f"{number_text(value * 100)}%" if percent else number_text(value)
        case Constant(name=name):
            return name
        case Label(text=text):
            return text

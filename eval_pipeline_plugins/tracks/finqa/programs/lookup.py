"""Looks up numbers that a plan refers to by row and column of the page's table."""

import re
from collections.abc import Sequence

from eval_pipeline.answers.printed import printed_number
from eval_pipeline.core.numbers import normalised_text
from eval_pipeline_plugins.tracks.finqa.programs.program import (
    EXTRACT,
    LOOKUP,
    Label,
    Literal,
    Program,
    ProgramStep,
    literal,
)

Table = Sequence[Sequence[str | int | float]]

_WORD = re.compile(r"[^\W_]+")


def look_up(table: Table, row: str, column: str) -> Literal:
    """Returns the number in a cell. A label is matched by its text, or else by words that no other label has.

    If no row and column match, they are swapped, since tables are laid out in both ways.

    Raises:
        ValueError: with one sentence that lists the existing labels.
    """
    if not table:
        raise ValueError("the page has no table")
    rows, columns = [str(line[0]) if line else "" for line in table[1:]], [str(cell) for cell in table[0][1:]]
    for down, across in ((row, column), (column, row)):
        found_row, found_column = _one(down, rows), _one(across, columns)
        if found_row is not None and found_column is not None:
            return _cell(table[1 + found_row], 1 + found_column, row, column)
    wanted = row if _one(row, rows) is None and _one(row, columns) is None else column
    known = "; ".join(f"'{label[:40]}'" for label in [*rows, *columns][:12])
    raise ValueError(f"no one row or column of the table is '{wanted[:60]}'; there are: {known}")


def resolved(program: Program, table: Table) -> Program:
    """Returns the program with looked-up numbers inserted; lookups that fail are left unchanged."""
    if LOOKUP not in [step.operation for step in program.steps]:
        return program
    return Program(tuple([_resolved(step, table) for step in program.steps]))


def _resolved(step: ProgramStep, table: Table) -> ProgramStep:
    if step.operation != LOOKUP:
        return step
    try:
        return ProgramStep(EXTRACT, (look_up(table, *labels(step)),), step.source)
    except ValueError:
        return step


def labels(step: ProgramStep) -> tuple[str, str]:
    """Returns row and column of a lookup step."""
    row, column = [argument.text if isinstance(argument, Label) else "" for argument in step.arguments]
    return row, column


def _one(wanted: str, labels: Sequence[str]) -> int | None:
    """Returns the index of the intended label; None if there is none or it is ambiguous."""
    text = normalised_text(wanted)
    equal = [index for index, label in enumerate(labels) if normalised_text(label) == text]
    if equal:
        return equal[0] if len(equal) == 1 else None
    words = _words(wanted)
    near = [index for index, label in enumerate(labels) if words and words <= _words(label)]
    return near[0] if len(near) == 1 else None


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _cell(line: Sequence[str | int | float], index: int, row: str, column: str) -> Literal:
    cell = line[index] if index < len(line) else ""
    if not isinstance(cell, str):
        return Literal(float(cell))
    number = printed_number(cell)
    if number is None:
        raise ValueError(f"the cell of '{row[:60]}' and '{column[:60]}' holds no number: '{cell[:40]}'")
    return literal(number)

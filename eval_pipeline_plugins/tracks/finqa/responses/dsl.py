"""Parses FinQA's program language as models write it: `subtract(412.5, 331.0), divide(#0, 331.0)`, also nested."""

import re
from collections.abc import Sequence
from itertools import takewhile

from eval_pipeline_plugins.tracks.finqa.programs.program import (
    MAX_ARGUMENTS,
    MAX_STEPS,
    OPERATIONS,
    TABLE_OPERATIONS,
    Argument,
    Program,
    ProgramStep,
    StepReference,
    calls,
    closing,
    read_argument,
    row_label,
)
from eval_pipeline_plugins.tracks.finqa.responses.calculation import MAX_CHARS, CalculationError, parse_calculation

_MAX_DEPTH = 60
_NAMES = "|".join(sorted(OPERATIONS, key=len, reverse=True))
_START = re.compile(rf"\b(?:{_NAMES})\s*\(", re.IGNORECASE)
_FURTHER = re.compile(rf"\s*[,;\n]\s*(?=(?:{_NAMES})\s*\()", re.IGNORECASE)


def find_program(text: str) -> str | None:
    """Returns the last program in a text (consecutive calls of known operations), or None."""
    found, position = None, 0
    while (start := _START.search(text, position)) is not None:
        found, position = _chain(text, start) or found, start.end()
        if found is not None and text.startswith(found, start.start()):
            position = start.start() + len(found)
    return found if found is None else _FURTHER.sub(", ", found)


def _chain(text: str, start: re.Match[str]) -> str | None:
    """Returns the consecutive calls starting there; None if the first is not closed."""
    call: re.Match[str] | None = start
    end = None
    while call is not None:
        inside = text[call.end() : call.end() + MAX_CHARS]
        try:
            end = call.end() + closing(inside, 0) + 1
        except ValueError:
            break
        further = _FURTHER.match(text, end)
        call = None if further is None else _START.match(text, further.end())
    return None if end is None else text[start.start() : end]


def program_of_tokens(tokens: Sequence[str]) -> str:
    """Joins FinQA's tokens to the text of a program: `["subtract(", "5829", "5735", ")", "EOF"]`."""
    written = " ".join(takewhile(lambda piece: piece != "EOF", tokens))
    # Insert commas between arguments, and after calls.
    return re.sub(r"(?<=[^(\s]) (?=[^)\s])", ", ", written)


def parse_dsl(text: str) -> Program:
    """Parses a program with any operation allowed in plans; a nested call becomes a step of its own.

    Raises:
        CalculationError: with one sentence.
    """
    reader = _Reader()
    try:
        for name, inside in calls(text):
            reader.roots.append(reader.call(name, inside, 0).step)
    except ValueError as error:
        raise CalculationError(str(error)) from None
    if not reader.steps:
        raise CalculationError("the program is empty")
    if reader.referred and len(reader.steps) > len(reader.roots):
        raise CalculationError("a reference #k beside calls within calls may mean two steps")
    return Program(tuple(reader.steps))


def read_calculation(text: str) -> Program:
    """Parses a calculation in either form: an arithmetic expression, or FinQA's program language.

    Raises:
        CalculationError: with one sentence.
    """
    if _START.match(text.lstrip()) is None:
        return parse_calculation(text)
    if len(text) > MAX_CHARS:
        raise CalculationError(f"the calculation has {len(text)} characters, at most {MAX_CHARS} are read")
    program, _, _result = text.partition("=")
    return parse_dsl(_FURTHER.sub(", ", program.strip()))


class _Reader:
    """Collects the steps of a program in execution order."""

    def __init__(self) -> None:
        self.steps: list[ProgramStep] = []
        self.roots: list[int] = []
        self.referred = False
        self.arguments = 0

    def call(self, name: str, inside: str, depth: int) -> StepReference:
        operation = name.lower()
        if operation not in OPERATIONS:
            raise ValueError(f"unknown operation '{name[:40]}'; use one of {', '.join(sorted(OPERATIONS))}")
        if depth > _MAX_DEPTH:
            raise ValueError(f"the program is nested deeper than {_MAX_DEPTH} levels")
        if operation in TABLE_OPERATIONS:
            return self.step(operation, row_label(inside))
        return self.step(operation, *[self.argument(part, depth) for part in _parts(inside)])

    def argument(self, text: str, depth: int) -> Argument:
        if (match := _START.match(text)) is not None and text.endswith(")"):
            return self.call(match[0][:-1].strip(), text[match.end() : -1], depth + 1)
        argument = read_argument(text)
        if isinstance(argument, StepReference):
            self.referred = True
            # References count steps as written; one to a later step is reported when the program runs.
            return StepReference(self.roots[argument.step]) if argument.step < len(self.roots) else argument
        return argument

    def step(self, operation: str, *arguments: Argument) -> StepReference:
        self.arguments += len(arguments)
        if len(self.steps) >= MAX_STEPS:
            raise ValueError(f"the program has more than {MAX_STEPS} steps")
        if self.arguments > MAX_ARGUMENTS:
            raise ValueError(f"the program has more than {MAX_ARGUMENTS} arguments")
        self.steps.append(ProgramStep(operation, arguments))
        return StepReference(len(self.steps) - 1)


def _parts(inside: str) -> list[str]:
    """Splits the arguments between two brackets at commas that are not in inner brackets."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(inside):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(inside[start:position].strip())
            start = position + 1
    return [*parts, inside[start:].strip()]

"""Carried values: replaces numbers that are answers to earlier turns by the calculations that gave them.

If the turn before gave -72479, then `-72479 / 476915` and `subtract(404436, 476915), divide(#0, 476915)` mean the same.
For the reasons see docs/decisions/0051-carried-values.md.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from functools import lru_cache
from math import log

from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.finqa.programs.program import (
    EXTRACT,
    MAX_STEPS,
    Argument,
    Constant,
    Literal,
    Program,
    ProgramStep,
    StepReference,
)

_NEAR = 0.01
_BANDS = 50
_HUNDREDFOLD = log(100.0)
_NOISE = 1e-9
_HUNDRED = Constant("const_100", 100.0)
_MINUS_ONE = Constant("const_m1", -1.0)


@value
class CarriedAnswer:
    """The answer to an earlier turn, which a later turn may use.

    Attributes:
        number: the answer.
        program: the program that gave it, with carried values replaced.
    """

    number: float
    program: Program


@value
class Resolved:
    """A program with its carried values replaced by their calculations.

    Attributes:
        carried: number of distinct values that were replaced.
    """

    program: Program
    carried: int


IsPrinted = Callable[[float], bool]
Bands = Set[int]
"""Logarithmic bands of sizes, so that a single lookup tells whether any answer is near a number."""


def resolve(
    program: Program, answers: Sequence[CarriedAnswer], other: Program | None, is_printed: IsPrinted
) -> Resolved:
    """Replaces each literal that is the answer to an earlier turn by that answer's calculation.

    A literal is such an answer if it equals it to the digits written, and within 1%; signs and percent (25 for 0.25)
    are ignored. Exact matches are tried first, then the order of `answers`.

    Args:
        program: a plan or a gold program.
        answers: in the order in which they are tried.
        other: the program it is compared with; literals that this one contains, too, are left unchanged.
        is_printed: whether a size is printed on the page; such numbers are not taken for rounded answers.
    """
    near = dict.fromkeys(near_any(program, {band for answer in answers for band in bands_of(answer.number)}))
    if not near:
        return Resolved(program, 0)
    kept = frozenset[float]() if other is None else sizes(other)
    found: dict[Literal, _Stand] = {}
    for literal in near:
        stand = None if abs(literal.value) in kept else _stand_of(literal, answers, is_printed)
        if stand is not None:
            found[literal] = stand
    if not found:
        return Resolved(program, 0)
    written = _written_out(program, found)
    return Resolved(program, 0) if written is None else Resolved(written, len(found))


def computes(program: Program) -> bool:
    """Whether a program computes anything, rather than only reading a number."""
    return any(step.operation != EXTRACT for step in program.steps)


def sizes(program: Program) -> frozenset[float]:
    """Returns the absolute values of a program's literals."""
    return frozenset(
        [abs(argument.value) for step in program.steps for argument in step.arguments if isinstance(argument, Literal)]
    )


@value
class _Stand:
    """The answer that a literal stands for, times -1 if `negated`, times 100 if `in_percent`."""

    program: Program
    negated: bool
    in_percent: bool


def bands_of(number: float) -> tuple[int, ...]:
    """Returns the bands of sizes that may stand for an answer: close to it, or to a hundred times it."""
    if not number:
        return ()
    place = log(abs(number))
    here, there = int(place * _BANDS), int((place + _HUNDREDFOLD) * _BANDS)
    return here - 1, here, here + 1, there - 1, there, there + 1


def near_any(program: Program, bands: Bands) -> list[Literal]:
    """Returns the literals whose sizes are in one of the bands; fast, since it is called for every turn."""
    return [
        argument
        for step in program.steps
        for argument in step.arguments
        if type(argument) is Literal and argument.value and int(log(abs(argument.value)) * _BANDS) in bands
    ]


def _stand_of(literal: Literal, answers: Sequence[CarriedAnswer], is_printed: IsPrinted) -> _Stand | None:
    size = abs(literal.value)
    rounded: _Stand | None = None
    for answer in answers:
        whole = abs(answer.number)
        for scale in (1.0, 100.0):
            distance = abs(size - whole * scale)
            if distance > _NEAR * whole * scale or not whole:
                continue
            stand = _Stand(answer.program, (literal.value < 0) != (answer.number < 0), scale != 1.0)
            if distance <= _NOISE * size:
                return stand
            if rounded is None and distance <= half_unit(size, literal.percent):
                rounded = stand
    return None if rounded is None or is_printed(size) else rounded


@lru_cache(maxsize=4096)
def half_unit(size: float, percent: bool) -> float:
    """Returns half a unit of the last written digit; a float does not preserve trailing zeros."""
    text = f"{size * 100 if percent else size:.12g}"
    decimals = len(text.partition(".")[2]) if "e" not in text else 12
    return 0.5 * 10.0**-decimals * (1.0 + _NOISE) / (100 if percent else 1)


def _written_out(program: Program, found: dict[Literal, "_Stand"]) -> Program | None:
    """Returns the program with the steps of the carried answers before its own; None if that is too long."""
    steps: list[ProgramStep] = []
    places = {literal: _append(steps, stand) for literal, stand in found.items()}
    moved: list[StepReference] = []
    for step in program.steps:
        arguments = tuple([_moved(argument, moved, places) for argument in step.arguments])
        if step.operation == EXTRACT and isinstance(arguments[0], StepReference):
            moved.append(arguments[0])
            continue
        steps.append(ProgramStep(step.operation, arguments, step.source))
        moved.append(StepReference(len(steps) - 1))
    if moved[-1].step != len(steps) - 1:
        steps.append(ProgramStep(EXTRACT, (moved[-1],)))
    return Program(tuple(steps)) if len(steps) <= MAX_STEPS else None


def _moved(argument: Argument, moved: Sequence[StepReference], places: dict[Literal, StepReference]) -> Argument:
    if isinstance(argument, Literal):
        return places.get(argument, argument)
    if isinstance(argument, StepReference) and argument.step < len(moved):
        return moved[argument.step]
    return argument


def _append(steps: list[ProgramStep], stand: _Stand) -> StepReference:
    """Appends the steps of an answer; returns a reference to its result."""
    start = len(steps)
    steps += _from(stand.program, start)
    if stand.negated:
        last = steps[-1]
        if last.operation in ("subtract", "difference") and len(last.arguments) == 2:
            steps[-1] = ProgramStep(last.operation, last.arguments[::-1], last.source)
        else:
            steps.append(ProgramStep("multiply", (StepReference(len(steps) - 1), _MINUS_ONE)))
    if stand.in_percent:
        steps.append(ProgramStep("multiply", (StepReference(len(steps) - 1), _HUNDRED)))
    return StepReference(len(steps) - 1)


def _from(program: Program, start: int) -> Iterator[ProgramStep]:
    """Yields the steps of a program renumbered to begin at `start`."""
    for step in program.steps:
        arguments = tuple(
            [StepReference(a.step + start) if isinstance(a, StepReference) else a for a in step.arguments]
        )
        yield ProgramStep(step.operation, arguments, step.source)


def program_text(program: Program) -> str:
    """Returns a program in FinQA's form: `subtract(8181, 20454), divide(#0, 20454)`."""
    if len(program.steps) == 1 and program.steps[0].operation == EXTRACT:
        return _argument_text(program.steps[0].arguments[0])
    return ", ".join(f"{step.operation}({', '.join(map(_argument_text, step.arguments))})" for step in program.steps)


def _argument_text(argument: Argument) -> str:
    if isinstance(argument, StepReference):
        return f"#{argument.step}"
    if isinstance(argument, Literal):
        return f"{argument.value * 100:.12g}%" if argument.percent else f"{argument.value:.12g}"
    return argument.name if isinstance(argument, Constant) else argument.text

"""Finds the calculation behind an answer that is only a number, by searching small ones.

What is found is a guess. So that it is not found by chance, the number must be met to the digits written, and so few
calculations may lie near it that less than one in ten such numbers would be met by accident.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from eval_pipeline_plugins.tracks.finqa.cases.document import Document
from eval_pipeline_plugins.tracks.finqa.mistakes.carried import half_unit
from eval_pipeline_plugins.tracks.finqa.programs.execute import Value
from eval_pipeline_plugins.tracks.finqa.programs.matching import is_number, within_relative
from eval_pipeline_plugins.tracks.finqa.programs.program import EXTRACT, Literal, Program, ProgramStep, StepReference

MOST_CHANCE = 0.1
_NEIGHBOURHOOD = 0.05
_MOST_NUMBERS = 60
_Steps = tuple[ProgramStep, ...]


def is_as_written(answer: float, value: Value | None) -> bool:
    """Whether an answer is a value, rounded to the digits of the answer, and within 1% of it."""
    return is_number(value) and is_rounded(answer, value) and within_relative(answer, value)


def is_rounded(answer: float, value: float) -> bool:
    """Whether an answer is a value rounded to the digits of the answer, however few these are."""
    return bool(answer) and abs(answer - value) <= half_unit(abs(answer), False)


def chance(answer: float, values: Iterable[Value | None]) -> float:
    """Returns how many of these values are expected within the rounding of an answer, from how many are around it."""
    width = _NEIGHBOURHOOD * abs(answer)
    around = {round(value, 9) for value in values if is_number(value) and abs(value - answer) <= width}
    return (len(around) - 1) * min(half_unit(abs(answer), False) / width, 1.0)


def guessed_program(answer: float, page: Document, used: Sequence[float]) -> Program | None:
    """Returns the calculation of an answer: a number of the page, or of two numbers; None if there is none or several.

    Args:
        answer: the number that was answered.
        page: the page of the case.
        used: numbers of earlier turns, which are tried before all pairs of the same line item or period.
    """
    if page.prints(abs(answer)) or any(is_as_written(abs(answer), abs(number)) for number in used):
        return Program((ProgramStep(EXTRACT, (Literal(answer),)),))
    tried = list(dict.fromkeys(map(abs, used)))[-_MOST_NUMBERS:]
    return _of_pairs(answer, combinations(tried, 2)) or _of_pairs(answer, page.pairs)


def _of_pairs(answer: float, pairs: Iterable[tuple[float, float]]) -> Program | None:
    """Returns the only calculation with a pair of numbers that gives the answer, unless chance would find one."""
    width = _NEIGHBOURHOOD * abs(answer)
    around = [found for pair in pairs for found in _computed(*pair) if abs(found[0] - answer) <= width]
    matching = {steps for value, steps in around if is_as_written(answer, value)}
    if len(matching) != 1 or chance(answer, [value for value, _ in around]) > MOST_CHANCE:
        return None
    return Program(matching.pop())


def _computed(a: float, b: float) -> Iterator[tuple[float, _Steps]]:
    """Yields sum, differences, ratios and growth rates of two numbers, with their steps."""
    yield a + b, _steps("add", a, b)
    for first, second in ((a, b), (b, a)):
        difference = _steps("subtract", first, second)
        yield first - second, difference
        if second:
            yield first / second, _steps("divide", first, second)
            growth = ProgramStep("divide", (StepReference(0), Literal(second)))
            yield (first - second) / second, (*difference, growth)


def _steps(name: str, a: float, b: float) -> _Steps:
    return (ProgramStep(name, (Literal(a), Literal(b))),)

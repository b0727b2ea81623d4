"""Finds the calculation behind an answer that is only a number, by searching small ones.

What is found is a guess. So that it is not found by chance, the number must be met to the digits written, and so few
calculations may lie near it that less than one in ten such numbers would be met by accident.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from eval_pipeline.tracks.finqa.carried import half_unit
from eval_pipeline.tracks.finqa.document import Document
from eval_pipeline.tracks.finqa.execute import Value
from eval_pipeline.tracks.finqa.expression import Node, Operation, places, replaced, value_of
from eval_pipeline.tracks.finqa.matching import Answer, is_number, within_relative
from eval_pipeline.tracks.finqa.program import EXTRACT, Constant, Literal, Program, ProgramStep, StepReference

_MOST_CHANCE = 0.1
_NEIGHBOURHOOD = 0.05
_MOST_NUMBERS = 60
_SCALES = (0.001, 0.01, 0.1, 10.0, 100.0, 1000.0, 1e6)
_OPERATIONS = ("add", "subtract", "multiply", "divide")
_Steps = tuple[ProgramStep, ...]


def is_as_written(answer: float, value: Value | None) -> bool:
    """Whether an answer is a value, rounded to the digits of the answer, and within 1% of it."""
    if not is_number(value) or not answer:
        return False
    return abs(answer - value) <= half_unit(abs(answer), False) and within_relative(answer, value)


def nearest_tree(answer: Answer, gold: Node, page: Document) -> Node | None:
    """Returns the calculation with one slip against the gold one that gives the answer; None if there is none.

    Slips are tried in the order of how few there are: another operation or a step left out, a number of the same line
    item or period or a constant of another size, any number of the page.
    """
    if not is_number(answer):
        return None
    near: list[Node] = []
    others: list[Node] = []
    for at, leaf in places(gold):
        if isinstance(leaf, Literal):
            for size, is_near in _others(leaf, page):
                (near if is_near else others).extend(replaced(gold, at, Literal(sign * size)) for sign in (1.0, -1.0))
        elif isinstance(leaf, Constant):
            near.extend(replaced(gold, at, Literal(leaf.value * scale)) for scale in _SCALES)
    for family in ([*_with_other_operation(gold)], near, others):
        values = [value_of(tree, page.table) for tree in family]
        found = next((tree for tree, value in zip(family, values, strict=True) if is_as_written(answer, value)), None)
        if found is not None and _chance(answer, values) <= _MOST_CHANCE:
            return found
    return None


def _with_other_operation(gold: Node) -> Iterator[Node]:
    for at, node in places(gold):
        if isinstance(node, Operation):
            yield from (replaced(gold, at, part) for part in node.parts if not (at == () and part == gold))
            if node.name in _OPERATIONS and len(node.parts) == 2:
                for name in _OPERATIONS:
                    if name != node.name:
                        yield replaced(gold, at, Operation(name, node.parts))
                        yield replaced(gold, at, Operation(name, node.parts[::-1]))


def _others(literal: Literal, page: Document) -> Iterator[tuple[float, bool]]:
    """Yields the other sizes of the page, and whether they share line item or period with a number."""
    here = page.places_of(literal)
    for size, theirs in page.placed.items():
        if size != abs(literal.value):
            near = any(a.item == b.item or not a.is_of_another_period(b) for a in here for b in theirs)
            yield (size / 100 if literal.percent else size), near


def _chance(answer: float, values: Iterable[Value | None]) -> float:
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
    if len(matching) != 1 or _chance(answer, [value for value, _ in around]) > _MOST_CHANCE:
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

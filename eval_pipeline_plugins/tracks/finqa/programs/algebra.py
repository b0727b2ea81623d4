"""Decides whether two programs are algebraically equal expressions."""

from functools import lru_cache
from hashlib import blake2b

from eval_pipeline.core.numbers import normalised_text
from eval_pipeline_plugins.tracks.finqa.programs.execute import step_problems
from eval_pipeline_plugins.tracks.finqa.programs.program import (
    EXTRACT,
    LOOKUP,
    TABLE_OPERATIONS,
    Argument,
    Constant,
    Label,
    Program,
    StepReference,
)

PRIME = 2**127 - 1

Fraction = tuple[int, int]
"""Numerator and denominator modulo the prime; keeping both avoids inversions on the way."""


class _DivisionByZeroError(Exception):
    """A divisor is zero at the point, usually because the expression is zero."""


def same_expression(plan: Program, gold: Program) -> bool:
    """Whether two programs compute the same rational function of their literals.

    Every distinct literal is a symbol, and `const_*` is a number. Both programs are evaluated at a point modulo a
    127-bit prime. Equal expressions always agree; different ones agree with a probability below 1e-30 for any program
    that people write (degree / 2^127, Schwartz and Zippel). The point is a fixed pseudo-random function of the
    literals, so a symbol has the same value in every program. `exp`, `greater` and `table_*` are separate symbols
    derived from their arguments.

    A literal equal to the value of a `const_*` in either program is read as that number; otherwise `(a - b) / b * 100`
    divided by `const_100` could not cancel. The sign of a literal is a factor, so that `a + -5` equals `a - 5`. If a
    divisor is zero at the point, only programs with the same steps are equal.
    """
    if _has_problems(plan):
        return False
    if plan == gold:  # frequent, and ten times as fast
        return True
    if _has_problems(gold):
        return False
    constants = _constants(plan) | _constants(gold)
    try:
        (a, b), (c, d) = _value(plan, constants), _value(gold, constants)
    except _DivisionByZeroError:
        shapes: dict[object, int] = {}
        return _shape(plan, shapes) == _shape(gold, shapes)
    return a * d % PRIME == c * b % PRIME


def _has_problems(program: Program) -> bool:
    return any(step_problems(step, index) for index, step in enumerate(program.steps))


def _constants(program: Program) -> set[float]:
    steps = program.steps
    return {abs(argument.value) for step in steps for argument in step.arguments if isinstance(argument, Constant)}


def _value(program: Program, constants: set[float]) -> Fraction:
    found: list[Fraction] = []
    for step in program.steps:
        arguments = [_argument(argument, found, constants) for argument in step.arguments]
        found.append(arguments[0] if step.operation == EXTRACT else _apply(step.operation, arguments))
    return found[-1]


def _argument(argument: Argument, found: list[Fraction], constants: set[float]) -> Fraction:
    if isinstance(argument, StepReference):
        return found[argument.step]
    if isinstance(argument, Label):
        return _symbol(f"text {normalised_text(argument.text)}"), 1
    size = abs(argument.value)
    if isinstance(argument, Constant) or size in constants:
        numerator, denominator = argument.value.as_integer_ratio()
        return numerator % PRIME, denominator % PRIME
    symbol = _literal(size)
    return (-symbol % PRIME if argument.value < 0 else symbol), 1


@lru_cache(maxsize=8192)
def _literal(size: float) -> int:
    return _symbol(f"literal {size:.12g}")  # rounded, because 8.04 / 100 and 0.0804 differ in the last bit


@lru_cache(maxsize=8192)
def _symbol(key: str) -> int:
    return int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest(), "little") % PRIME


def _apply(name: str, arguments: list[Fraction]) -> Fraction:
    if name in TABLE_OPERATIONS or name in ("exp", "greater", LOOKUP):
        return _symbol(f"{name} {[_reduced(argument) for argument in arguments]}"), 1
    result = arguments[0]
    if name in ("add", "sum", "average"):
        for argument in arguments[1:]:
            result = _sum(result, argument, 1)
        return _quotient(result, (len(arguments), 1)) if name == "average" else result
    if name in ("multiply", "product"):
        for a, b in arguments[1:]:
            result = result[0] * a % PRIME, result[1] * b % PRIME
        return result
    last = arguments[1]
    if name in ("divide", "ratio", "percentage"):
        return _quotient(result, last)
    difference = _sum(result, last, -1)
    return _quotient(difference, last) if name == "percentage_change" else difference


def _sum(first: Fraction, second: Fraction, sign: int) -> Fraction:
    (a, b), (c, d) = first, second
    return ((a + sign * c) % PRIME, b) if b == d else ((a * d + sign * c * b) % PRIME, b * d % PRIME)


def _quotient(first: Fraction, second: Fraction) -> Fraction:
    (a, b), (c, d) = first, second
    if c == 0:
        raise _DivisionByZeroError
    return a * d % PRIME, b * c % PRIME


def _reduced(fraction: Fraction) -> int:
    """Returns the same number for equal fractions."""
    return fraction[0] * pow(fraction[1], -1, PRIME) % PRIME


def _shape(program: Program, shapes: dict[object, int]) -> int:
    """Returns a number for the program's shape, from a table shared by both programs."""
    found: list[int] = []
    for step in program.steps:
        key = tuple([_part(argument, found, shapes) for argument in step.arguments])
        found.append(key[0] if step.operation == EXTRACT else shapes.setdefault((step.operation, key), len(shapes)))
    return found[-1]


def _part(argument: Argument, found: list[int], shapes: dict[object, int]) -> int:
    if isinstance(argument, StepReference):
        return found[argument.step]
    key = normalised_text(argument.text) if isinstance(argument, Label) else argument.value
    return shapes.setdefault(key, len(shapes))

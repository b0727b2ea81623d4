"""Whether two programs are the same expression up to algebra."""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

from eval_pipeline.core.numbers import normalised_text
from eval_pipeline.tracks.finqa.execute import step_problems
from eval_pipeline.tracks.finqa.program import (
    EXTRACT,
    TABLE_OPERATIONS,
    Argument,
    Constant,
    Label,
    Program,
    Reference,
)

PRIME = 2**61 - 1
_POINTS = 3

Fingerprint = tuple[int, ...]
"""The value of an expression at the three points, modulo the prime."""


class _DivisionByZeroError(Exception):
    """A divisor is zero at one of the points, most often because it is zero as an expression."""


def same_expression(plan: Program, gold: Program) -> bool:
    """Whether two programs compute the same rational function of their literals.

    Every distinct literal is a symbol and `const_*` is a number. Both programs are evaluated at three points modulo a
    61-bit prime; equal expressions always agree, others with a probability below 1e-15 (Schwartz and Zippel). The
    points are a fixed pseudo-random function of the literal, so a symbol has the same value in every program without
    a table to look it up in. `exp`, `greater` and `table_*` are symbols of their own, made from their arguments.

    Refinement: a literal whose value equals that of a `const_*` in either program is read as that number, for
    `(a - b) / b * 100` divided by `const_100` could not cancel otherwise. The sign of a literal is a factor, so that
    `a + -5` is `a - 5`. Where a divisor is zero at a point, the programs are compared step by step instead.
    """
    for program in (plan, gold):
        if any(step_problems(step, index) for index, step in enumerate(program.steps)):
            return False
    constants = _constants(plan) | _constants(gold)
    try:
        return _fingerprint(plan, constants) == _fingerprint(gold, constants)
    except _DivisionByZeroError:
        shapes: dict[object, int] = {}
        return _shape(plan, shapes) == _shape(gold, shapes)


def _constants(program: Program) -> set[float]:
    steps = program.steps
    return {abs(argument.value) for step in steps for argument in step.arguments if isinstance(argument, Constant)}


def _fingerprint(program: Program, constants: set[float]) -> Fingerprint:
    found: list[Fingerprint] = []
    for step in program.steps:
        arguments = [_argument(argument, found, constants) for argument in step.arguments]
        found.append(arguments[0] if step.operation == EXTRACT else _apply(step.operation, arguments))
    return found[-1]


def _argument(argument: Argument, found: list[Fingerprint], constants: set[float]) -> Fingerprint:
    if isinstance(argument, Reference):
        return found[argument.step]
    if isinstance(argument, Label):
        return _symbol(f"text {normalised_text(argument.text)}")
    size = abs(argument.value)
    if isinstance(argument, Constant) or size in constants:
        return _number(argument.value)
    symbol = _symbol(f"literal {size:.12g}")  # 8.04 / 100 and 0.0804 differ in the last bit
    return _negated(symbol) if argument.value < 0 else symbol


@lru_cache(maxsize=8192)
def _symbol(key: str) -> Fingerprint:
    digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8 * _POINTS).digest()
    return tuple([int.from_bytes(digest[8 * i : 8 * i + 8], "little") % PRIME for i in range(_POINTS)])


@lru_cache(maxsize=256)
def _number(value: float) -> Fingerprint:
    numerator, denominator = value.as_integer_ratio()
    return (numerator * pow(denominator, -1, PRIME) % PRIME,) * _POINTS


def _negated(a: Fingerprint) -> Fingerprint:
    return tuple([-x % PRIME for x in a])


def _apply(name: str, arguments: list[Fingerprint]) -> Fingerprint:
    if name in ("add", "sum", "average"):
        total = tuple([sum(values) % PRIME for values in zip(*arguments, strict=True)])
        return _quotient(total, _number(float(len(arguments)))) if name == "average" else total
    if name in ("multiply", "product"):
        result = arguments[0]
        for argument in arguments[1:]:
            result = tuple([x * y % PRIME for x, y in zip(result, argument, strict=True)])
        return result
    if name in TABLE_OPERATIONS or name in ("exp", "greater"):
        return _symbol(f"{name} {arguments}")
    a, b = arguments
    if name in ("divide", "ratio", "percentage"):
        return _quotient(a, b)
    difference = tuple([(x - y) % PRIME for x, y in zip(a, b, strict=True)])
    return _quotient(difference, b) if name == "percentage_change" else difference


def _quotient(a: Fingerprint, b: Fingerprint) -> Fingerprint:
    if 0 in b:
        raise _DivisionByZeroError
    return tuple([x * pow(y, -1, PRIME) % PRIME for x, y in zip(a, b, strict=True)])


def _shape(program: Program, shapes: dict[object, int]) -> int:
    """The number of the program's shape in a table that both programs share: equal shapes, equal numbers."""
    found: list[int] = []
    for step in program.steps:
        key = tuple([_part(argument, found, shapes) for argument in step.arguments])
        found.append(key[0] if step.operation == EXTRACT else shapes.setdefault((step.operation, key), len(shapes)))
    return found[-1]


def _part(argument: Argument, found: Sequence[int], shapes: dict[object, int]) -> int:
    if isinstance(argument, Reference):
        return found[argument.step]
    key = normalised_text(argument.text) if isinstance(argument, Label) else argument.value
    return shapes.setdefault(key, len(shapes))

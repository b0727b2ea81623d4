"""Programs: the common form into which gold programs, plans and calculations are parsed."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from eval_pipeline.answers.printed import Number, printed_number
from eval_pipeline.core.values import value

MAX_STEPS = 200
MAX_ARGUMENTS = 1000

EXTRACT = "extract"
LOOKUP = "lookup"
"""Operation that reads a number by row and column of the table."""
READING = frozenset({EXTRACT, LOOKUP})
"""Operations that read a number and compute nothing."""
TABLE_OPERATIONS = frozenset({"table_sum", "table_average", "table_max", "table_min"})
BINARY_OPERATIONS = frozenset(
    {"subtract", "divide", "exp", "greater", "difference", "ratio", "percentage", "percentage_change"}
)
"""Operations with exactly two arguments."""
FOLDING_OPERATIONS = frozenset({"add", "multiply", "sum", "product", "average"})
"""Operations with one or more arguments."""
OPERATIONS = TABLE_OPERATIONS | BINARY_OPERATIONS | FOLDING_OPERATIONS
_GOLD_OPERATIONS = TABLE_OPERATIONS | {"add", "subtract", "multiply", "divide", "exp", "greater"}

_REFERENCE = re.compile(r"#(\d{1,9})")
_CONSTANT = re.compile(r"const_(m?)(\d{1,15}(?:\.\d{1,15})?)")
_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\(")
_NONE = re.compile(r",\s*none\s*$", re.IGNORECASE)
_SIMPLE_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\(([^()]*)\)\s*(?:,|$)")
_EXPANSIONS: dict[str, tuple[str, ...]] = {
    "percentage": ("divide",),
    "ratio": ("divide",),
    "percentage_change": ("subtract", "divide"),
    "difference": ("subtract",),
}
_FOLDED = {"sum": "add", "add": "add", "average": "add", "product": "multiply", "multiply": "multiply"}


@value
class StepReference:
    """The result of an earlier step, written `#k`."""

    step: int


@value
class Literal:
    """A number from the document; `percent` if it was written with a percent sign."""

    value: float
    percent: bool = False


@value
class Constant:
    """One of FinQA's named constants, such as `const_100`."""

    name: str
    value: float


@value
class Label:
    """A text: the row of a table operation, or an extracted yes or no."""

    text: str


Argument = StepReference | Literal | Constant | Label


@value
class ProgramStep:
    """One step; an extraction has the operation `extract` and the value as its only argument.

    Attributes:
        source: where the value comes from, according to the model.
    """

    operation: str
    arguments: tuple[Argument, ...]
    source: str = ""


@value
class Program:
    """Steps in execution order; the value of the last one is the answer."""

    steps: tuple[ProgramStep, ...]


@lru_cache(maxsize=4096)
def read_argument(text: str) -> Argument:
    """Parses an argument; anything but a number, reference or constant is a label."""
    text = text.strip()
    if match := _REFERENCE.fullmatch(text):
        return StepReference(int(match[1]))
    if match := _CONSTANT.fullmatch(text):
        return Constant(text, -float(match[2]) if match[1] else float(match[2]))
    number = printed_number(text)
    return Label(text) if number is None else literal(number)


def literal(number: Number) -> Literal:
    """Returns the literal for a printed number."""
    return Literal(number.value, number.percent)


def parse_program(text: str) -> Program:
    """Parses a gold program: `subtract(8181, 20454), divide(#0, 20454)`, or a bare number.

    Raises:
        ValueError: with one sentence, if the text is not a program or can never run.
    """
    number = None if text[:1].isalpha() else printed_number(text)
    if number is not None:
        return Program((ProgramStep(EXTRACT, (literal(number),)),))
    found = enumerate(islice(calls(text), MAX_STEPS + 1))
    steps = tuple([_gold_step(name, inside, index) for index, (name, inside) in found])
    if not steps:
        raise ValueError("the program is empty")
    if len(steps) > MAX_STEPS:
        raise ValueError(f"the program has more than {MAX_STEPS} steps")
    return Program(steps)


def calls(text: str) -> Iterator[tuple[str, str]]:
    """Yields the calls of a program in order: operation, and text between its brackets.

    Raises:
        ValueError: with one sentence, at the first thing that is not a call.
    """
    position, count = 0, 0
    while position < len(text):
        if simple := _SIMPLE_CALL.match(text, position):
            yield simple[1], simple[2]
            position = simple.end()
        else:
            name, inside, position = _call_with_brackets(text, position, count)
            yield name, inside
        count += 1


def _call_with_brackets(text: str, position: int, index: int) -> tuple[str, str, int]:
    """Returns operation, text between its brackets, and start of the next call; row labels may contain brackets."""
    match = _CALL.match(text, position)
    if match is None:
        found = text[position : position + 40]
        raise ValueError(f"expected a number or operation(argument, argument), found '{found}'")
    end = closing(text, match.end())
    rest = text[end + 1 :].lstrip()
    if rest and not rest.startswith(","):
        raise ValueError(f"expected a comma after step {index}, found '{rest[:40]}'")
    return match[1], text[match.end() : end], len(text) - len(rest) + 1 if rest else len(text)


def closing(text: str, start: int) -> int:
    """Returns the position of the bracket that closes the call whose arguments begin at `start`.

    Raises:
        ValueError: with one sentence, if no bracket does.
    """
    depth = 1
    for position in range(start, len(text)):
        if text[position] == "(":
            depth += 1
        elif text[position] == ")":
            depth -= 1
            if depth == 0:
                return position
    raise ValueError(f"a bracket is not closed: '{text[max(start - 20, 0) : start + 20]}'")


def _gold_step(name: str, inside: str, index: int) -> ProgramStep:
    if name not in _GOLD_OPERATIONS:
        raise ValueError(f"step {index}: unknown operation '{name}'; known: {', '.join(sorted(_GOLD_OPERATIONS))}")
    if name in TABLE_OPERATIONS:
        label = row_label(inside)
        if not label.text:
            raise ValueError(f"step {index}: {name} needs the label of a table row")
        return ProgramStep(name, (label,))
    arguments = tuple(read_argument(part) for part in inside.split(","))
    if len(arguments) != 2:
        raise ValueError(f"step {index}: {name} takes two arguments, found {len(arguments)}")
    for argument in arguments:
        if isinstance(argument, Label):
            raise ValueError(f"step {index}: '{argument.text}' is not a number, a reference #k or a constant const_k")
        if isinstance(argument, StepReference) and argument.step >= index:
            raise ValueError(f"step {index}: #{argument.step} is not an earlier step")
    return ProgramStep(name, arguments)


def row_label(inside: str) -> Label:
    """Returns the row of a table operation; FinQA writes `table_max(row, none)`."""
    return Label(_NONE.sub("", inside).strip())


def operations(program: Program) -> tuple[str, ...]:
    """Returns the operations of the compute steps as written."""
    return tuple(step.operation for step in program.steps if step.operation not in READING)


def expanded_operations(program: Program) -> tuple[str, ...]:
    """Returns the operations with synonyms expanded: `average` of three becomes `add, add, divide`."""
    expanded: list[str] = []
    for step in program.steps:
        name = step.operation
        if name in READING:
            continue
        if (folded := _FOLDED.get(name)) is not None:
            expanded.extend([folded] * max(len(step.arguments) - 1, 0))
            if name == "average":
                expanded.append("divide")
        else:
            expanded.extend(_EXPANSIONS.get(name, (name,)))
    return tuple(expanded)


def literal_values(program: Program) -> tuple[float, ...]:
    """Returns the distinct literal operands in order of appearance, without `const_*`."""
    found: dict[float, None] = {}
    for step in program.steps:
        for argument in step.arguments:
            if isinstance(argument, Literal):
                found[argument.value] = None
    return tuple(found)

"""Programs as trees, in which parts can be put in another's place: for finding out what went wrong in a wrong one."""

from collections.abc import Callable, Iterator, Sequence

from eval_pipeline.core.values import value
from eval_pipeline.tracks.finqa.execute import NO, YES, StepError, Table, Value, apply_operation, over_row
from eval_pipeline.tracks.finqa.program import (
    EXTRACT,
    TABLE_OPERATIONS,
    Argument,
    Constant,
    Label,
    Literal,
    Program,
    StepReference,
)

_MOST_NODES = 400
"""A step may be used twice, so that a tree can be much larger than its program."""
_BINARY = {"difference": "subtract", "ratio": "divide", "percentage": "divide"}
_FOLDED = {"sum": "add", "add": "add", "product": "multiply", "multiply": "multiply", "average": "add"}


@value
class Operation:
    """An operation on the values of its parts."""

    name: str
    parts: tuple["Node", ...]


Node = Operation | Literal | Constant | Label
Place = tuple[int, ...]
"""The way from the top of a tree to a part: which part of each operation."""


class NoTreeError(Exception):
    """A program that cannot run, or that is too large as a tree."""


def tree_of(program: Program) -> Node:
    """The tree of a program with synonyms written out; operations that fold take two parts each.

    Raises:
        NoTreeError: it refers to a step that is not there, or has too many parts.
    """
    found: list[tuple[Node, int]] = []
    for step in program.steps:
        parts = [_part(argument, found) for argument in step.arguments]
        size = 1 + sum(size for _, size in parts)
        if size > _MOST_NODES or not parts:
            raise NoTreeError
        nodes = [node for node, _ in parts]
        found.append((nodes[0] if step.operation == EXTRACT else _operation(step.operation, nodes), size))
    if not found:
        raise NoTreeError
    return found[-1][0]


def _part(argument: Argument, found: Sequence[tuple[Node, int]]) -> tuple[Node, int]:
    if not isinstance(argument, StepReference):
        return argument, 1
    if argument.step >= len(found):
        raise NoTreeError
    return found[argument.step]


def _operation(name: str, nodes: list[Node]) -> Node:
    if name == "percentage_change" and len(nodes) == 2:
        return Operation("divide", (Operation("subtract", tuple(nodes)), nodes[1]))
    if (folded := _FOLDED.get(name)) is None:
        return Operation(_BINARY.get(name, name), tuple(nodes))
    result = nodes[0]
    for node in nodes[1:]:
        result = Operation(folded, (result, node))
    if name == "average":
        return Operation("divide", (result, Constant(f"const_{len(nodes)}", float(len(nodes)))))
    return result


def value_of(node: Node, table: Table) -> Value | None:
    """The value of a tree; None where it has none."""
    try:
        return _value(node, table)
    except (StepError, OverflowError):
        return None


def _value(node: Node, table: Table) -> Value:
    if isinstance(node, (Literal, Constant)):
        return node.value
    if isinstance(node, Label):
        return node.text
    if node.name in TABLE_OPERATIONS:
        row = node.parts[0]
        return over_row(node.name, row.text if isinstance(row, Label) else "", table)
    numbers: list[float] = []
    for part in node.parts:
        number = _value(part, table)
        if isinstance(number, str):
            raise StepError("a word is no number")
        numbers.append(number)
    try:
        return apply_operation(node.name, numbers)
    except IndexError:
        raise StepError("too few arguments") from None


def places(node: Node, at: Place = ()) -> Iterator[tuple[Place, Node]]:
    """Every part of a tree, itself first, with the way to it."""
    yield at, node
    if isinstance(node, Operation):
        for number, part in enumerate(node.parts):
            yield from places(part, (*at, number))


def replaced(node: Node, at: Place, by: Node) -> Node:
    """The tree with another part at a place."""
    if not at:
        return by
    assert isinstance(node, Operation)
    first, rest = at[0], at[1:]
    parts = tuple([replaced(part, rest, by) if n == first else part for n, part in enumerate(node.parts)])
    return Operation(node.name, parts)


def exchanged(node: Node, by: Callable[[Node], Node | None]) -> Node:
    """The tree with other parts where `by` gives one; of nested ones the outermost."""
    other = by(node)
    if other is not None:
        return other
    if not isinstance(node, Operation):
        return node
    return Operation(node.name, tuple([exchanged(part, by) for part in node.parts]))


def operations_of(node: Node) -> list[str]:
    """The names of its operations, sorted."""
    return sorted([part.name for _, part in places(node) if isinstance(part, Operation)])


def literals_of(node: Node) -> list[Literal]:
    """Its distinct literals in order of appearance."""
    return list(dict.fromkeys([part for _, part in places(node) if isinstance(part, Literal)]))


def is_word(found: Value | None) -> bool:
    """Whether a value is yes or no."""
    return found in (YES, NO)

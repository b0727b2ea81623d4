"""Programs as trees whose parts can be replaced, to find out what is wrong with a wrong program."""

from collections.abc import Callable, Iterator

from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.finqa.programs.execute import StepError, Table, Value, apply_operation, over_row
from eval_pipeline_plugins.tracks.finqa.programs.program import (
    EXTRACT,
    TABLE_OPERATIONS,
    Constant,
    Label,
    Literal,
    Program,
    StepReference,
)

_MOST_NODES = 400
"""Limit on nodes: steps may be used repeatedly, so a tree can be much larger than its program."""
_BINARY = {"difference": "subtract", "ratio": "divide", "percentage": "divide"}
_FOLDED = {"sum": "add", "add": "add", "product": "multiply", "multiply": "multiply", "average": "add"}


@value
class Operation:
    """An operation on the values of its parts."""

    name: str
    parts: tuple["Node", ...]


Node = Operation | Literal | Constant | Label
Place = tuple[int, ...]
"""The path from the root of a tree to a part, as indices of parts."""


class NoTreeError(Exception):
    """The program cannot run, or is too large as a tree."""


def tree_of(program: Program) -> Node:
    """Returns the tree of a program with synonyms expanded, and `a / b - 1` written as `(a - b) / b`.

    Folding operations get two parts each.

    Raises:
        NoTreeError: it refers to a missing step, or has too many parts.
    """
    nodes: list[Node] = []
    counts: list[int] = []
    for step in program.steps:
        parts: list[Node] = []
        count = 1
        for argument in step.arguments:
            if isinstance(argument, StepReference):
                if argument.step >= len(nodes):
                    raise NoTreeError
                parts.append(nodes[argument.step])
                count += counts[argument.step]
            else:
                parts.append(argument)
                count += 1
        if count > _MOST_NODES or not parts:
            raise NoTreeError
        nodes.append(parts[0] if step.operation == EXTRACT else _operation(step.operation, parts))
        counts.append(count)
    if not nodes:
        raise NoTreeError
    return nodes[-1]


def _operation(name: str, parts: list[Node]) -> Node:
    if len(parts) == 2:
        first, second = parts
        if name == "percentage_change":
            return Operation("divide", (Operation("subtract", (first, second)), second))
        if name == "subtract" and number_of(second) == 1 and isinstance(first, Operation) and first.name == "divide":
            return Operation("divide", (Operation("subtract", first.parts), first.parts[-1]))
    if (folded := _FOLDED.get(name)) is None:
        return Operation(_BINARY.get(name, name), tuple(parts))
    result = parts[0]
    for part in parts[1:]:
        result = Operation(folded, (result, part))
    if name == "average":
        return Operation("divide", (result, Constant(f"const_{len(parts)}", float(len(parts)))))
    return result


def number_of(node: Node) -> float | None:
    """Returns the number of a leaf; None for other nodes."""
    return node.value if isinstance(node, (Literal, Constant)) else None


def value_of(node: Node, table: Table) -> Value | None:
    """Returns the value of a tree; None if it has none."""
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
    """Yields every part of a tree with its path, the root first."""
    yield at, node
    if isinstance(node, Operation):
        for number, part in enumerate(node.parts):
            yield from places(part, (*at, number))


def replaced(node: Node, at: Place, by: Node) -> Node:
    """Returns the tree with the part at a path replaced."""
    if not at:
        return by
    assert isinstance(node, Operation)
    first, rest = at[0], at[1:]
    parts = tuple([replaced(part, rest, by) if n == first else part for n, part in enumerate(node.parts)])
    return Operation(node.name, parts)


def exchanged(node: Node, by: Callable[[Node], Node | None]) -> Node:
    """Returns the tree with parts replaced where `by` returns a node; parts of replaced parts are not visited."""
    other = by(node)
    if other is not None:
        return other
    if not isinstance(node, Operation):
        return node
    return Operation(node.name, tuple([exchanged(part, by) for part in node.parts]))


def operations_of(node: Node) -> list[str]:
    """Returns the names of its operations, sorted."""
    return sorted([part.name for part in _parts(node) if isinstance(part, Operation)])


def numbers_of(node: Node) -> set[float]:
    """Returns the absolute values of its numbers, including named constants."""
    return {abs(part.value) for part in _parts(node) if isinstance(part, (Literal, Constant))}


def _parts(node: Node) -> list[Node]:
    """Returns every part of a tree, the root first."""
    found = [node]
    for part in found:
        if isinstance(part, Operation):
            found += part.parts
    return found

"""Follows the names of code to the expressions that they stand for."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_MOST_INLINED = 12


def assignments(tree: ast.Module) -> dict[str, ast.expr]:
    """Returns the expressions of names that are assigned exactly once, at the top level."""
    found: dict[str, ast.expr] = {}
    twice: set[str] = set()
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=expression):
                if name in found:
                    twice.add(name)
                found[name] = expression
    return {name: expression for name, expression in found.items() if name not in twice}


@dataclass(frozen=True, slots=True)
class BoundName:
    """What a name stands for: an expression, and what the names in it stood for when it was computed."""

    expression: ast.expr
    names: "Names"


Names = Mapping[str, BoundName]


def statements(tree: ast.Module) -> Iterator[tuple[ast.stmt, Names]]:
    """Yields each statement at the top level, with what names stand for in it; a name may be assigned again."""
    names: dict[str, BoundName] = {}
    for statement in tree.body:
        yield statement, names
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                names = {**names, name: BoundName(value, names)}
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str()) as column)], value=value
            ):
                column_set = ast.keyword(None, ast.Dict([column], [value]))
                whole = ast.Call(ast.Attribute(ast.Name(name, ast.Load()), "assign", ast.Load()), [], [column_set])
                names = {**names, name: BoundName(whole, names)}
            case _:
                changed = {
                    part.id
                    for part in ast.walk(statement)
                    if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
                }
                names = {name: bound for name, bound in names.items() if name not in changed}


def inlined(node: ast.expr, names: Names) -> ast.expr:
    """Returns an expression in which names are replaced by the expressions they stand for."""
    copy = ast.parse(ast.unparse(node), mode="eval").body
    found: ast.expr = _Inlined(names, [_MOST_INLINED]).visit(copy)
    return found


class _Inlined(ast.NodeTransformer):
    def __init__(self, names: Names, left: list[int]) -> None:
        self._names, self._left = names, left

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._names or not self._left[0]:
            return node
        self._left[0] -= 1
        bound = self._names[node.id]
        copy = ast.parse(ast.unparse(bound.expression), mode="eval").body
        found: ast.expr = _Inlined(bound.names, self._left).visit(copy)
        return found


class Applied(ast.NodeTransformer):
    """Applies functions of one table where they are written, as in `table.loc[lambda one: one["x"] > 3]`."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Applies what is in brackets to the table."""
        self.generic_visit(node)
        table = node.value.value if isinstance(node.value, ast.Attribute) and node.value.attr == "loc" else node.value
        node.slice = _applied(node.slice, table)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Applies what `assign` is given to the table."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "assign":
            for word in node.keywords:
                word.value = _applied(word.value, node.func.value)
        return node


def _applied(function: ast.expr, table: ast.expr) -> ast.expr:
    match function:
        case ast.Lambda(args=ast.arguments(args=[ast.arg(arg=name)]), body=body):
            return inlined(body, {name: BoundName(table, {})})
    return function

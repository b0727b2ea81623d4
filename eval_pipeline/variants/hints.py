"""Finds from its syntax tree what reference code examines in its tables; variants of the tables are made for that."""

import ast
import hashlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

_MOST_INLINED = 12
_LARGEST_COUNT = 60
_OTHER_ROWS = frozenset("groupby merge join concat reset_index value_counts pivot_table agg explode melt".split())
_TESTS = frozenset("isin isna notna isnull notnull between startswith endswith contains duplicated".split())
_GROUPING = frozenset("groupby pivot_table drop_duplicates duplicated value_counts crosstab".split())
_COUNTING = frozenset("head tail nlargest nsmallest rolling".split())


def read_hints(code: str, columns: Collection[str], seed: str) -> dict[str, Any]:
    """Returns what code examines, as plain data for the sandbox.

    Args:
        code: reference code that parses.
        columns: names of the columns of all tables.
        seed: text from which the seed of the variants is made.

    Returns:
        `columns`: columns that the code mentions. `conditions`: tests of rows, each with the text of the test
        (`condition`) and of the compared expression (`operand`, empty for none), its `columns`, the `constants` it is
        compared with, whether the expression is a `bare` column, and whether new values must lie `within` those that
        the column has, as the question does not say what is right outside all bins. `groups`: columns by which rows
        are grouped. `keys`: pairs of joined columns. `counts`: small whole numbers with which numbers of rows are
        compared. `texts`: texts that are not names of columns. `seed`.
    """
    tree = ast.parse(code)
    assigned = assignments(tree)
    named = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    named += [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    mentioned = sorted(set(columns).intersection(named))
    digest = hashlib.sha256(f"{seed}\n{code}".encode()).digest()
    return {
        "columns": mentioned,
        "conditions": [*_conditions(tree, assigned, columns)],
        "groups": sorted({name for name in _grouped(tree, assigned) if name in columns}),
        "keys": sorted({pair for pair in _keys(tree) if pair[0] in columns and pair[1] in columns}),
        "counts": sorted(set(_counts(tree, assigned))),
        "texts": sorted({text for text in _texts(tree) if text not in columns}),
        "seed": int.from_bytes(digest[:4]),
    }


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


class _Inlined(ast.NodeTransformer):
    def __init__(self, assigned: Mapping[str, ast.expr]) -> None:
        self._assigned = assigned
        self._left = _MOST_INLINED

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._assigned or not self._left:
            return node
        self._left -= 1
        found: ast.expr = self.visit(ast.parse(ast.unparse(self._assigned[node.id]), mode="eval").body)
        return found


def _inlined(node: ast.expr, assigned: Mapping[str, ast.expr]) -> ast.expr:
    """Returns an expression in which such names are replaced by their expressions."""
    copy = ast.parse(ast.unparse(node), mode="eval").body
    found: ast.expr = _Inlined(assigned).visit(copy)
    return found


def _conditions(tree: ast.AST, assigned: Mapping[str, ast.expr], columns: Collection[str]) -> Iterator[dict[str, Any]]:
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=[right]):
                yield from _compared(node, left, right, assigned, columns)
            case ast.Call(func=ast.Attribute(value=operand, attr=name), args=arguments) if name in _TESTS:
                constants = [value for argument in arguments for value in _constants(argument)]
                yield from _tested(node, operand if name in ("isin", "between") else None, constants, assigned, columns)
            case ast.Call(func=ast.Attribute(attr="cut" | "digitize"), args=[operand, *more]):
                # Which bin a value at an edge is in depends on `right`.
                edges = [*more[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "bins")]
                constants = [value for edge in edges for value in _constants(_inlined(edge, assigned))]
                if len(constants) > 1:
                    known = ast.Call(ast.Attribute(operand, "notna", ast.Load()), [], [])
                    for found in _tested(known, operand, constants, assigned, columns):
                        yield {**found, "within": True}
            case ast.UnaryOp(op=ast.Invert(), operand=ast.Subscript() as operand):
                yield from _tested(operand, None, [], assigned, columns)


def _compared(
    node: ast.Compare,
    left: ast.expr,
    right: ast.expr,
    assigned: Mapping[str, ast.expr],
    columns: Collection[str],
) -> Iterator[dict[str, Any]]:
    for operand, other in ((left, right), (right, left)):
        constants = _constants(other)
        if constants:
            yield from _tested(node, operand, constants, assigned, columns)
            return
    yield from _tested(node, ast.BinOp(left, ast.Sub(), right), [0], assigned, columns)


def _tested(
    condition: ast.expr,
    operand: ast.expr | None,
    constants: list[Any],
    assigned: Mapping[str, ast.expr],
    columns: Collection[str],
) -> Iterator[dict[str, Any]]:
    """Yields a condition unless it concerns other rows than those of a table."""
    whole = _inlined(condition, assigned)
    if any(isinstance(part, ast.Attribute) and part.attr in _OTHER_ROWS for part in ast.walk(whole)):
        return
    inner = None if operand is None else _inlined(operand, assigned)
    looked_at = [
        part.value if isinstance(part, ast.Constant) else part.attr
        for part in ast.walk(whole if inner is None else inner)
        if isinstance(part, ast.Attribute) or (isinstance(part, ast.Constant) and isinstance(part.value, str))
    ]
    yield {
        "condition": ast.unparse(whole),
        "operand": "" if inner is None else ast.unparse(inner),
        "columns": sorted(set(columns).intersection(looked_at)),
        "constants": constants,
        "bare": isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant),
        "within": False,
    }


def _constants(node: ast.expr) -> list[Any]:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() as found):
            return [found]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as found)):
            return [-found]
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return [found for part in parts for found in _constants(part)]
        case ast.Call(func=ast.Attribute(attr="Timestamp"), args=[ast.Constant(value=str() as found)]):
            return [found]
    return []


def _grouped(tree: ast.AST, assigned: Mapping[str, ast.expr]) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _GROUPING:
                parts = [*node.args, *(keyword.value for keyword in node.keywords)]
                # What is counted by value is the column itself.
                parts += [inner] if name in ("value_counts", "duplicated") else []
                for part in parts:
                    yield from _texts(_inlined(part, assigned))


def _texts(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def _keys(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr not in ("merge", "join", "map", "isin"):
            continue
        given = {keyword.arg: [*_texts(keyword.value)] for keyword in node.keywords}
        yield from ((name, name) for name in given.get("on", []))
        yield from zip(given.get("left_on", []), given.get("right_on", []), strict=False)
        if node.func.attr in ("map", "isin"):
            inside = [*_texts(node.func.value)]
            yield from ((one, other) for one in inside for argument in node.args for other in _texts(argument))


def _counts(tree: ast.AST, assigned: Mapping[str, ast.expr]) -> Iterator[int]:
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=[ast.Constant(value=int() as number)]):
                inlined = _inlined(left, assigned)
                if any(isinstance(part, ast.Attribute) and part.attr in _OTHER_ROWS for part in ast.walk(inlined)):
                    yield from _small(number)
            case ast.Call(func=ast.Attribute(attr=name), args=[ast.Constant(value=int() as number), *_]):
                if name in _COUNTING:
                    yield from _small(number)


def _small(number: int) -> Iterator[int]:
    if not isinstance(number, bool) and 0 < number <= _LARGEST_COUNT:
        yield number

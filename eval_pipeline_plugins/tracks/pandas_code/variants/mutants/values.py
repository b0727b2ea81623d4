"""Makes mutants of computed values: other columns, arithmetic, units, and parts of dates and texts."""

import ast
import copy
from collections.abc import Iterator, Mapping

from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.mutant import CodeChange, Kind, Known, missing, other

_OPERATORS: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.Sub: ast.Add,
    ast.Add: ast.Sub,
    ast.FloorDiv: ast.Div,
}
_PARTS_OF_DATES: Mapping[str, str] = {
    "year": "month",
    "month": "day",
    "day": "dayofweek",
    "hour": "minute",
    "week": "day",
    "quarter": "month",
    "days": "seconds",
}
_FREQUENCIES: Mapping[str, str] = {"Q": "M", "M": "Q", "%Y-%m": "%Y", "%Y-%m-%d": "%Y-%m"}


def value_changes(node: ast.AST, known: Known, written: frozenset[str]) -> Iterator[CodeChange]:
    """Yields changes of a computed value.

    Args:
        node: any node of the code.
        known: columns of the tables.
        written: names of columns that the code creates or mentions.
    """
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            yield from _arithmetic(node, left, op, right)
        case ast.Subscript(ctx=ast.Load(), value=table, slice=ast.Constant(value=str() as column)):
            another = known.another_column(column, written)
            if another is not None:
                by = ast.Subscript(table, ast.Constant(another), ast.Load())
                yield CodeChange(Kind.COLUMN, False, f"`{column}` were `{another}`", node, node, by)
        case ast.Attribute() | ast.Subscript():
            yield from _parts(node)
        case ast.Call(func=ast.Attribute(attr=name)):
            yield from _arguments(node, name)
        case ast.Dict(values=values):
            for held in values:
                if isinstance(held, ast.Constant) and isinstance(held.value, int | float):
                    words = f"the factor {held.value} were {held.value * 10}"
                    yield CodeChange(Kind.CONSTANT, False, words, held, held, ast.Constant(held.value * 10))


def _parts(node: ast.Attribute | ast.Subscript) -> Iterator[CodeChange]:
    """Yields expressions for other parts of dates and texts."""
    match node:
        case ast.Attribute(value=ast.Attribute(attr="dt") as inner, attr=part) if part in _PARTS_OF_DATES:
            by: ast.expr = ast.Attribute(inner, _PARTS_OF_DATES[part], ast.Load())
            yield CodeChange(Kind.DERIVED, False, f"`{part}` were `{_PARTS_OF_DATES[part]}`", node, node, by)
        case ast.Subscript(value=ast.Attribute(attr="str") as inner, slice=place):
            number = _whole(place)
            if number is not None:
                another = number + 1 if number >= 0 else 0
                by = ast.Subscript(inner, ast.Constant(another), ast.Load())
                words = f"part {number} of the text were part {another}"
                yield CodeChange(Kind.DERIVED, False, words, node, node, by)


def _arguments(node: ast.Call, name: str) -> Iterator[CodeChange]:
    """Yields calls with other periods, durations and edges."""
    match node.args:
        case [ast.Constant(value=str() as form)] if name in ("to_period", "strftime") and form in _FREQUENCIES:
            by = copy.deepcopy(node)
            by.args = [ast.Constant(_FREQUENCIES[form])]
            yield CodeChange(Kind.DERIVED, False, f"`{form}` were `{_FREQUENCIES[form]}`", node, node, by)
        case [_, ast.List(elts=edges), *_] if name == "cut":
            for edge in edges:
                if isinstance(edge, ast.Constant) and type(edge.value) is int and edge.value:
                    words = f"the edge {edge.value} were {edge.value + 1}"
                    yield CodeChange(Kind.CONSTANT, False, words, edge, edge, ast.Constant(edge.value + 1))
    if name == "Timedelta":
        yield from _duration(node)


def _arithmetic(node: ast.BinOp, left: ast.expr, op: ast.operator, right: ast.expr) -> Iterator[CodeChange]:
    by = ast.BinOp(left, _OPERATORS[type(op)](), right)
    yield CodeChange(Kind.DERIVED, False, other(node, by), node, node, by)
    for piece, kept in ((right, left), (left, right)):
        if not (isinstance(op, ast.Sub | ast.Div | ast.FloorDiv) and piece is left):
            yield CodeChange(Kind.DERIVED, True, f"{missing(piece)} in the computation", node, piece, kept)
    for piece in (left, right):
        if isinstance(piece, ast.Constant) and isinstance(piece.value, int | float) and piece.value:
            words = f"the constant {piece.value} were {piece.value * 10}"
            yield CodeChange(Kind.CONSTANT, False, words, piece, piece, ast.Constant(piece.value * 10))


def _duration(node: ast.Call) -> Iterator[CodeChange]:
    for word in node.keywords:
        if isinstance(word.value, ast.Constant) and type(word.value.value) is int:
            by = ast.Constant(word.value.value + 1)
            words = f"{word.value.value} {word.arg} were {word.value.value + 1}"
            yield CodeChange(Kind.CONSTANT, False, words, word.value, word.value, by)


def _whole(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
            return -number
    return None

"""Names and constants in expressions of Python."""

import ast
from collections.abc import Iterator

from eval_pipeline_plugins.tracks.agent.way.facts.told import plain

_ASIDE = frozenset({"str", "dt", "values", "iloc", "loc", "year", "month", "day", "upper", "lower", "strip", "astype"})


_DAYS = frozenset({"date", "datetime", "timestamp"})


def range_of(node: ast.expr) -> list[str]:
    """Returns between which numbers those of a range are."""
    match node:
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(int(first)), ast.Constant(int(last))]):
            return [f">= {first}", f"< {last}"]
    return []


def column_of(node: ast.expr) -> str:
    """Returns the name of the column that an expression is about; nothing for a variable."""
    name = name_of(node)
    return "" if name in {one.id.lower() for one in ast.walk(node) if isinstance(one, ast.Name)} else name


def is_constant(node: ast.expr) -> bool:
    """Returns whether an expression has constants alone."""
    return next(constants_of(node), None) is not None


def constants_of(node: ast.expr) -> Iterator[str]:
    """Yields the constants that an expression is, one or those of a list."""
    match node:
        case ast.Constant(value=told):
            yield "null" if told is None else plain(told)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=told)):
            yield plain(f"-{told!r}")
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            for one in items:
                yield from constants_of(one)
        case ast.Call(args=[one]):  # Timestamp('2025-01-01')
            yield from constants_of(one)
        case ast.Call(func=called, args=[ast.Constant(int(year)), ast.Constant(int(month)), ast.Constant(int(day))]):
            if name_of(called).rpartition(".")[2] in _DAYS:
                yield f"{year}-{month:02}-{day:02}"


def name_of(node: ast.expr | None) -> str:
    """Returns the name of the column that an expression is about, or else of the variable."""
    match node:
        case ast.Subscript(slice=ast.Constant(value=str() as name)):
            return name.lower()
        case ast.Subscript(value=inner) | ast.Call(func=ast.Name(), args=[inner, *_]):
            return name_of(inner)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="pd" | "np" | "math")), args=[inner, *_]):
            return name_of(inner)
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str() as name), *_]):
            return name.lower()
        case ast.Call(func=ast.Attribute(value=inner)):
            return name_of(inner)
        case ast.Attribute(value=inner, attr=name):
            return name_of(inner) if name in _ASIDE else name.lower()
        case ast.Name(id=name):
            return name.lower()
        case ast.BinOp(left=one, right=other):
            return " ".join(sorted({name_of(one), name_of(other)} - {""}))
    return ""

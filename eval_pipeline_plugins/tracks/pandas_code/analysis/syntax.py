"""Parses Python into a syntax tree, and answers simple questions about such trees."""

import ast
import warnings
from collections.abc import Iterator

DEEPEST = 200
"""The most levels of nesting; deeper code is unreadable anyway, and would exhaust the stack of the analysis."""

INDEXERS = frozenset({"loc", "iloc", "at", "iat"})


def parse(code: str) -> ast.Module | None:
    """Returns the syntax tree of a snippet; None if it does not parse, or is nested more than `DEEPEST` levels deep."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about invalid escapes: a SyntaxWarning from Python 3.12 on
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree if _depth_within(tree, DEEPEST) else None


def _depth_within(tree: ast.AST, most: int) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(most):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return True
    return False


def links(node: ast.expr) -> Iterator[ast.expr]:
    """Yields a chain of calls, attributes and subscripts from its end to its root.

    For `a.b(c)` these are `a.b(c)` itself, `a.b` and `a`.
    """
    while True:
        yield node
        match node:
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Call(func=inner):
                node = inner
            case _:
                return


def root(node: ast.expr) -> ast.expr:
    """Returns the beginning of a chain."""
    return list(links(node))[-1]


def call_name(node: ast.AST) -> str | None:
    """Returns the name of the method or function that is called; None for other nodes and computed functions."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name
    return None


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """Returns a call's argument with this keyword."""
    return next((item.value for item in call.keywords if item.arg == name), None)


def argument(call: ast.Call, place: int, name: str) -> ast.expr | None:
    """Returns a call's argument at a position or with a keyword."""
    return call.args[place] if place < len(call.args) else keyword(call, name)


def bound_names(node: ast.AST) -> Iterator[str]:
    """Yields the names to which a target, an import, a definition or a parameter assigns a value."""
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.arg(arg=name)
            ):
                yield name
            case ast.alias(name=name, asname=alias):
                yield (alias or name).split(".")[0]

"""Small changes of code: numbers, comparisons, signs, conditions, bounds, and statements that are left out."""

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult}
_NOT_RUN = {"annotation", "args", "decorator_list", "pattern", "returns", "target", "targets", "type"}
"""Parts of nodes: not run when the function is, or no place for another expression."""
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Change:
    """A node of a syntax tree, and what takes its place: no statement at all if that is None."""

    name: str
    node: ast.expr | ast.stmt
    new: ast.expr | None


def changes(tree: ast.Module) -> list[Change]:
    """Every change of what the functions of a module do; code that runs on import, defaults too, is left alone.

    Names say the function and the change, and count those that are alike: they outlast edits elsewhere.
    """
    seen: Counter[str] = Counter()
    found = []
    for place, node in _running(tree, ""):
        for new in _expressions(node) if isinstance(node, ast.expr) else _statements(node):
            told = f"{place}: {_short(node)} {'is left out' if new is None else f'becomes {_short(new)}'}"
            seen[told] += 1
            found.append(Change(f"{told} ({seen[told]})", node, new))
    return found


def _running(node: ast.AST, place: str) -> Iterator[tuple[str, ast.expr | ast.stmt]]:
    """What runs when functions are called, each with the name of its function."""
    if isinstance(node, (*_FUNCTION, ast.ClassDef)):
        place = f"{place}.{node.name}".removeprefix(".")
    inside = place and not isinstance(node, ast.ClassDef)
    for name, value in ast.iter_fields(node):
        if name in _NOT_RUN and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and (inside or isinstance(child, (*_FUNCTION, ast.ClassDef))):
                if inside and isinstance(child, (ast.expr, ast.stmt)):
                    yield place, child
                if not isinstance(child, ast.JoinedStr):  # Python does not tell where its parts are
                    yield from _running(child, place)


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    """What an expression may become."""
    if isinstance(node, ast.Constant) and type(node.value) in {int, float}:
        yield _with(node, value=node.value + 1)  # type: ignore[operator]
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield _with(node, value=not node.value)
    elif isinstance(node, ast.Compare):
        yield _with(node, ops=[_COMPARISONS[type(node.ops[0])](), *node.ops[1:]])
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC and not _is_text(node):
        yield _with(node, op=_ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        yield from (
            _with(node, slice=_with(node.slice, **{n: None})) for n in ("lower", "upper") if getattr(node.slice, n)
        )
    elif isinstance(node, ast.IfExp) and isinstance(node.test, (ast.Name, ast.Attribute, ast.Call)):
        yield _with(node, body=node.orelse, orelse=node.body)


def _statements(node: ast.stmt) -> Iterator[ast.expr | None]:
    """Whether a statement may be left out: not if a name would be missing, which any test shows that comes there."""
    call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    kept = isinstance(node, ast.Assign) and all(isinstance(one, (ast.Attribute, ast.Subscript)) for one in node.targets)
    if call or kept or isinstance(node, ast.AugAssign):
        yield None


def _with(node: ast.expr, **fields: object) -> ast.expr:
    found = copy.copy(node)
    for name, value in fields.items():
        setattr(found, name, value)
    return found


def _is_text(node: ast.expr) -> bool:
    """Whether texts are put together: with another sign nothing would run, and so no figure could change."""
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 80 else f"{text[:77]}..."

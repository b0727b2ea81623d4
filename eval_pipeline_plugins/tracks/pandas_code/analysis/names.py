"""What the names in a snippet stand for, as far as the code shows it directly."""

import ast
from collections.abc import Iterable, Iterator
from itertools import islice

from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import keyword

MOST_TEXTS = 1000
MOST_LOOKUPS = 20
"""The most variables that are followed from one to the next; code may be written to make its analysis slow."""
MOST_VALUES = 100
"""The most values that are stored for a variable or column; later ones are ignored."""


class AssignedNames:
    """The values that a snippet assigns to variables, columns and loop variables."""

    def __init__(self, tree: ast.Module) -> None:
        self._variables: dict[str, list[ast.expr]] = {}
        self._columns: dict[str, list[ast.expr]] = {}
        self.modules: set[str] = {"pd", "np"}
        for node in ast.walk(tree):
            self._note(node)

    def variable(self, name: str) -> list[ast.expr]:
        """Returns what is assigned to a variable, in code order; at most `MOST_VALUES` values."""
        return self._variables.get(name, [])

    def column(self, name: str) -> list[ast.expr]:
        """Returns what is assigned to a column of any frame."""
        return self._columns.get(name, [])

    def texts(self, node: ast.expr | None) -> Iterator[str]:
        """Yields the texts in a literal, a list, the keys of a dict, or a variable with such a value.

        At most `MOST_TEXTS`.
        """
        return islice(self._texts(node, set()), MOST_TEXTS)

    def _texts(self, node: ast.expr | None, seen: set[str]) -> Iterator[str]:
        match node:
            case ast.Constant(value=str() as text):
                yield text
            case ast.Name(id=name):
                for value in self.unseen(name, seen):
                    yield from self._texts(value, seen)
            case ast.expr():
                for part in _listed(node):
                    yield from self._texts(part, seen)

    def unseen(self, name: str, seen: set[str]) -> list[ast.expr]:
        """Same as `variable`, but looks up each name only once (`seen` grows), and only a limited number of names."""
        if name in seen or len(seen) >= MOST_LOOKUPS:
            return []
        seen.add(name)
        return self.variable(name)

    def number(self, node: ast.expr | None) -> int | None:
        """Returns a whole number, or that of a variable with a single value; None if it is computed."""
        if isinstance(node, ast.Name) and len(self.variable(node.id)) == 1:
            node = self.variable(node.id)[0]
        match node:
            case ast.Constant(value=int() as number) if not isinstance(number, bool):
                return number
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
                return -number
        return None

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assign(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                self._assign(target, value)
            case ast.For(target=target, iter=source) | ast.comprehension(target=target, iter=source):
                if isinstance(source, ast.List | ast.Tuple | ast.Name | ast.Set):
                    self._assign(target, source)
            case ast.Call():
                self._note_call(node)
            case ast.Import(names=names):
                self.modules |= {(alias.asname or alias.name).split(".")[0] for alias in names}

    def _note_call(self, call: ast.Call) -> None:
        inplace = keyword(call, "inplace")
        match call.func:
            case ast.Attribute(value=ast.Name(id=name)) if isinstance(inplace, ast.Constant) and inplace.value is True:
                _keep(self._variables, name, call)
            case ast.Attribute(attr="assign"):
                for item in call.keywords:
                    if item.arg is not None:
                        _keep(self._columns, item.arg, item.value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ast.Name(id=name), _:
                _keep(self._variables, name, value)
            case ast.Subscript(slice=ast.Constant(value=str() as name)), _:
                _keep(self._columns, name, value)
            case ((ast.Tuple(elts=targets) | ast.List(elts=targets)), (ast.Tuple(elts=values) | ast.List(elts=values))):
                for part, held in zip(targets, values, strict=False):
                    self._assign(part, held)


def _keep(values: dict[str, list[ast.expr]], name: str, value: ast.expr) -> None:
    kept = values.setdefault(name, [])
    if len(kept) < MOST_VALUES:
        kept.append(value)


def _listed(node: ast.expr) -> Iterable[ast.expr | None]:
    """Returns the parts of a literal, a sum of lists, a conditional expression or a slice."""
    match node:
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items) | ast.Dict(keys=items):
            return items
        case ast.BinOp(left=left, right=right, op=ast.Add()) | ast.IfExp(body=left, orelse=right):
            return (left, right)
        case ast.Starred(value=value) | ast.NamedExpr(value=value):
            return (value,)
        case ast.Slice(lower=lower, upper=upper):
            return (lower, upper)
        case ast.Call(func=ast.Name(id="list" | "tuple" | "set" | "sorted"), args=[value]):
            return (value,)
    return ()

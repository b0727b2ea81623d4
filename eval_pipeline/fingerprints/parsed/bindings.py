"""Finds the names that statements bind, and to what, in the scopes of functions, lambdas and comprehensions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_INNER = frozenset(SCOPES)
_COMPREHENSIONS = frozenset((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp))
_LEAVES = frozenset((ast.Load, ast.Store, ast.Constant))
_BINDING = _INNER | {
    *(ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr),
    *(ast.For, ast.AsyncFor, ast.withitem, ast.Delete, ast.ExceptHandler, ast.Match),
}
"""Types of nodes that bind names; checking the type first is much faster, since most nodes do not."""


@dataclass(slots=True)
class Binding:
    """One thing that a name is bound to: an annotation, a value, or the target of an import.

    Attributes:
        target: module and name of an import; None instead of the name for the module itself.
        is_self: whether it is the first parameter of a method.
    """

    annotation: ast.expr | None = None
    value: ast.expr | None = None
    target: tuple[str, str | None] | None = None
    is_self: bool = False


@dataclass(slots=True)
class BoundNames:
    """The names bound in a function, a lambda, a comprehension or the body of a class inside a function."""

    names: dict[str, list[Binding]]
    outer: BoundNames | None = None
    is_class: bool = False
    known: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def find(self, name: str) -> tuple[BoundNames, list[Binding]] | None:
        """Returns the scope that binds a name, as seen from here; None for names of the module and builtins."""
        scope: BoundNames | None = self
        while scope is not None:
            if name in scope.names and (scope is self or not scope.is_class):
                return scope, scope.names[name]
            scope = scope.outer
        return None


def bound_names(statements: Iterable[ast.AST], package: str) -> dict[str, list[Binding]]:
    """Returns the names that statements bind in their own scope; `package` resolves relative imports."""
    found: dict[str, list[Binding]] = {}
    elsewhere: set[str] = set()
    for node in own_nodes(statements):
        if type(node) not in _BINDING:
            continue
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            elsewhere.update(node.names)
        for name, binding in _bound_by(node, package):
            found.setdefault(name, []).append(binding)
    return {name: bindings for name, bindings in found.items() if name not in elsewhere}


def own_nodes(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yields every node of some statements that belongs to the same scope.

    Inner functions and classes count as one node.
    """
    waiting = list(statements)
    while waiting:
        node = waiting.pop()
        yield node
        kind = type(node)
        if kind in _INNER:
            continue
        if kind in _COMPREHENSIONS:  # inside a comprehension, only := binds names of the enclosing scope
            waiting += [inner for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr)]
            continue
        for field_name in node._fields:  # like `ast.iter_child_nodes`, in a third of the time
            value = getattr(node, field_name, None)
            if isinstance(value, list):
                waiting += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST) and type(value) not in _LEAVES:
                waiting.append(value)


def _bound_by(node: ast.AST, package: str) -> Iterator[tuple[str, Binding]]:
    """Yields the names that one node binds."""
    if isinstance(node, ast.ExceptHandler):
        if node.name:
            yield node.name, Binding(node.type)
    elif isinstance(node, FUNCTIONS):
        yield node.name, Binding(node.returns)
    elif isinstance(node, ast.ClassDef):
        yield node.name, Binding()
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from ((name, Binding(target=target)) for name, target in imported(node, package) if name != "*")
    elif isinstance(node, ast.Match):
        for inner in (inner for case in node.cases for inner in ast.walk(case.pattern)):
            name = inner.rest if isinstance(inner, ast.MatchMapping) else getattr(inner, "name", None)
            if name:
                yield name, Binding(value=node.subject)
    else:
        yield from _assigned(node)


def _assigned(node: ast.AST) -> Iterator[tuple[str, Binding]]:
    """Yields the names to which one node assigns a value."""
    if isinstance(node, ast.AnnAssign):
        yield from _targets([node.target], Binding(node.annotation, node.value))
    elif isinstance(node, ast.Assign):
        yield from _targets(node.targets, Binding(value=node.value))
    elif isinstance(node, (ast.AugAssign, ast.NamedExpr)):
        yield from _targets([node.target], Binding(value=node.value))
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield from _targets([node.target], Binding(value=node.iter))
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield from _targets([node.optional_vars], Binding(value=node.context_expr))
    elif isinstance(node, ast.Delete):
        yield from _targets(node.targets, Binding())


def _targets(targets: Iterable[ast.expr], binding: Binding) -> Iterator[tuple[str, Binding]]:
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id, binding
        elif isinstance(target, (ast.Tuple, ast.List)):
            yield from _targets(target.elts, binding)
        elif isinstance(target, ast.Starred):
            yield from _targets([target.value], binding)


def comprehension_names(generators: Iterable[ast.comprehension]) -> dict[str, list[Binding]]:
    """Returns the names bound by the loops of a comprehension."""
    found: dict[str, list[Binding]] = {}
    for generator in generators:
        for name, binding in _targets([generator.target], Binding(value=generator.iter)):
            found.setdefault(name, []).append(binding)
    return found


def parameters(arguments: ast.arguments) -> list[ast.arg]:
    """Returns all parameters of a function, in order."""
    named = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return [parameter for parameter in named if parameter is not None]


def imported(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[tuple[str, tuple[str, str | None]]]:
    """Yields the names that an import binds, each with its module and the name there (None for the module itself)."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0], (_imported_module(alias), None)
        return
    module = absolute(node.module or "", node.level, package)
    for alias in node.names:
        yield alias.asname or alias.name, (module, alias.name)


def _imported_module(alias: ast.alias) -> str:
    # `import a.b` binds `a`, `import a.b as c` binds `a.b`
    return alias.name if alias.asname else alias.name.partition(".")[0]


def absolute(module: str, level: int, package: str) -> str:
    """Returns the full name of a module that is imported from inside a package with `level` leading dots."""
    if not level:
        return module
    start = package.split(".")
    start = start[: len(start) - level + 1]
    return ".".join([*start, module] if module else start)

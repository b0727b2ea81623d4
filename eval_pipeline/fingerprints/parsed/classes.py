"""Parses a class: its head, its members, and the attributes that its methods bind."""

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from eval_pipeline.fingerprints.parsed.bindings import (
    FUNCTIONS,
    SCOPES,
    Binding,
    BoundNames,
    bound_names,
    own_nodes,
    parameters,
)
from eval_pipeline.fingerprints.parsed.names import Names
from eval_pipeline.fingerprints.parsed.records import CLASS, FUNCTION, INSTANCE, VALUE, Definition
from eval_pipeline.fingerprints.parsed.trees import digest, does_nothing, text_digest

Bound = dict[str, list[Binding]]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def read_class(
    node: ast.ClassDef, others: Sequence[ast.stmt], names: Callable[[], Names], definitions: dict[str, Definition]
) -> tuple[str, ...]:
    """Adds the definitions of a class and its members; returns the paths of its bases.

    Args:
        node: the class.
        others: further statements of the module that modify it.
        names: creates a collector of names.
        definitions: receives the definitions.
    """
    members: dict[str, list[ast.stmt]] = {}
    loose: list[ast.stmt] = []
    for statement in node.body:
        if does_nothing(statement):
            continue
        bound = bound_names([statement], "")
        for name in bound:
            members.setdefault(name, []).append(statement)
        if not bound:
            loose.append(statement)
    definitions[node.name] = _head(node, members, [*loose, *others], names())
    for name, statements in members.items():
        definitions[f"{node.name}.{name}"] = _member(name, statements, members.keys(), names())
    for name, bindings in _instance_attributes(node).items():
        if name not in members:
            definitions[f"{node.name}.{name}"] = _instance_attribute(bindings, names())
    bases = names()
    return tuple(path for base in node.bases for path in bases.types(base, None))


def _head(
    node: ast.ClassDef, members: dict[str, list[ast.stmt]], others: Sequence[ast.stmt], names: Names
) -> Definition:
    """Returns the definition of the class itself, without its members but with the order of its attributes.

    The order matters because it is the order of a dataclass's fields.
    """
    parts = [*node.decorator_list, *node.bases, *node.keywords]
    names.statements([*parts, *others], None)
    order = [name for name, its in members.items() if not all(isinstance(one, FUNCTIONS) for one in its)]
    typed = [digest([parameter]) for parameter in getattr(node, "type_params", ())]
    marks = [digest(node.decorator_list), digest(node.bases), digest(node.keywords), digest(others, in_class=True)]
    tree = text_digest(" ".join([*marks, *typed, *order]))
    return Definition(CLASS, tree, tuple(sorted(names.found)))


def _member(name: str, statements: Sequence[ast.stmt], others: Collection[str], names: Names) -> Definition:
    """Returns the definition of a method, property or class attribute; `others` are the names of all members."""
    types: list[str] = []
    scope = BoundNames({}, is_class=True)
    for statement in statements:
        if isinstance(statement, FUNCTIONS):
            names.function(statement, scope, method=True)
            types += names.annotation(statement.returns, None)
            continue
        names.statements([statement], scope, in_class=True)
        for binding in bound_names([statement], "").get(name, ()):
            types += names.annotation(binding.annotation, None)
            types += names.types(binding.value, None)
        # a name in a class body may refer to another member
        loaded = (inner.id for inner in ast.walk(statement) if isinstance(inner, ast.Name))
        names.found.update(f"%|{inner}" for inner in loaded if inner in others and inner != name)
    kind = FUNCTION if any(isinstance(one, FUNCTIONS) for one in statements) else VALUE
    return Definition(kind, digest(statements, in_class=True), tuple(sorted(names.found)), tuple(dict.fromkeys(types)))


def _instance_attributes(node: ast.ClassDef) -> dict[str, list[tuple[Function, Bound, ast.stmt]]]:
    """Returns the statements in which methods bind attributes (`self.x = ...`), with their methods."""
    found: dict[str, list[tuple[Function, Bound, ast.stmt]]] = {}
    for method in node.body:
        if not isinstance(method, FUNCTIONS) or not (given := parameters(method.args)):
            continue
        local: Bound | None = None  # computed once for each method that binds anything
        for statement in own_nodes(method.body):
            if isinstance(statement, ast.stmt) and not isinstance(statement, SCOPES):
                for name in _bound_of(given[0].arg, statement):
                    local = bound_names(method.body, "") if local is None else local
                    found.setdefault(name, []).append((method, local, statement))
    return found


def _bound_of(owner: str, statement: ast.stmt) -> Iterator[str]:
    """Yields the attributes of `owner` that a statement itself binds, without those bound by statements inside it."""
    for target in _targets(statement):
        for inner in ast.walk(target):
            if not (isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store)):
                continue
            if isinstance(inner.value, ast.Name) and inner.value.id == owner:
                yield inner.attr


def _targets(statement: ast.stmt) -> Iterable[ast.expr]:
    if isinstance(statement, ast.Assign):
        return statement.targets
    if isinstance(statement, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)):
        return [statement.target]
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return [item.optional_vars for item in statement.items if item.optional_vars is not None]
    return ()


def _instance_attribute(bindings: Sequence[tuple[Function, Bound, ast.stmt]], names: Names) -> Definition:
    """Returns the definition of an instance attribute: its statement, or the whole method if it uses local variables.

    Parameters are not followed, because the code that creates the object leads to the values passed in.
    """
    statements: list[ast.stmt] = []
    types: list[str] = []
    for method, inside, statement in bindings:
        given = {parameter.arg for parameter in parameters(method.args)}
        worked_out = inside.keys() - given
        read = {inner.id for inner in ast.walk(statement) if isinstance(inner, ast.Name)}
        taken = method if read & worked_out or not isinstance(statement, _SIMPLE) else statement
        if isinstance(statement, ast.AnnAssign):
            types += names.annotation(statement.annotation, None)
        # known to be local, so it is not followed further
        local = {name: [] for name in given} if taken is statement else inside | {name: [] for name in given}
        scope = BoundNames(local)
        names.statements(taken.body if isinstance(taken, FUNCTIONS) else [taken], scope)
        statements.append(taken)
    return Definition(INSTANCE, digest(statements), tuple(sorted(names.found)), tuple(dict.fromkeys(types)))


_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign)

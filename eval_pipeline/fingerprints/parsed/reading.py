"""Parses a module: which statements define which names, and what each definition refers to."""

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from eval_pipeline.fingerprints.parsed.bindings import (
    FUNCTIONS,
    SCOPES,
    Binding,
    BoundNames,
    bound_names,
    imported,
    own_nodes,
    parameters,
)
from eval_pipeline.fingerprints.parsed.names import Names
from eval_pipeline.fingerprints.parsed.records import (
    CLASS,
    EFFECTS,
    FUNCTION,
    INSTANCE,
    PROGRAM,
    VALUE,
    Definition,
    Module,
    members_of,
)
from eval_pipeline.fingerprints.parsed.trees import digest, does_nothing, is_type_checking, text_digest

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


_DECLARED = "DATA_FILES"


@dataclass(slots=True)
class _Statements:
    """The statements of a module, by the name that they define; one statement may define several."""

    package: str
    by_name: dict[str, list[ast.stmt]] = field(default_factory=dict)
    loose: list[ast.stmt] = field(default_factory=list)
    imports: dict[str, list[tuple[str, str | None]]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)


def read_module(source: bytes, name: str, *, is_package: bool) -> Module:
    """Parses a module.

    Args:
        source: its text.
        name: its full name.
        is_package: whether its file is an `__init__.py`.

    Raises:
        SyntaxError: this version of Python cannot parse it.
    """
    package = name if is_package else name.rpartition(".")[0]
    found = _Statements(package)
    tree = ast.parse(source)
    _take_imports(found, tree.body)
    statements = list(_run(tree.body))
    _sort(found, statements)
    known = found.by_name.keys() | found.imports.keys()

    def names() -> Names:
        return Names(package, known, anything=bool(found.stars))

    definitions: dict[str, Definition] = {}
    bases: dict[str, tuple[str, ...]] = {}
    for defined, its in found.by_name.items():
        classes = [one for one in its if isinstance(one, ast.ClassDef)]
        if len(classes) == 1:
            others = [one for one in its if one is not classes[0]]
            bases[defined] = read_class(classes[0], others, names, definitions)
        else:
            definitions[defined] = _definition(defined, its, names())
    if found.loose:
        definitions[EFFECTS] = _definition(EFFECTS, found.loose, names())
    targets = {alias: tuple(its) for alias, its in found.imports.items()}
    files = tuple(_data_files(found.by_name.get(_DECLARED, ()), name))
    return Module(definitions, bases, members_of(bases, definitions), targets, tuple(found.stars), files)


def _definition(name: str, statements: Sequence[ast.stmt], names: Names) -> Definition:
    """Returns the definition of a function, or of statements that bind a name."""
    types: list[str] = []
    for statement in statements:
        if isinstance(statement, FUNCTIONS):
            types += names.annotation(statement.returns, None)
            names.function(statement, None, method=False)
            continue
        names.statements([statement], None)
        for binding in bound_names([statement], "").get(name, ()):
            types += names.annotation(binding.annotation, None)
            types += names.types(binding.value, None)
            if isinstance(binding.value, (ast.Subscript, ast.BinOp)):  # possibly a type alias
                types += names.annotation(binding.value, None)
    kind = FUNCTION if any(isinstance(one, FUNCTIONS) for one in statements) else VALUE
    return Definition(kind, digest(statements), tuple(sorted(names.found)), tuple(dict.fromkeys(types)))


def _take_imports(found: _Statements, body: Iterable[ast.stmt]) -> None:
    """Takes in every import outside of functions and classes, including those for type checkers only."""
    for node in own_nodes(body):
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        for name, target in imported(node, found.package):
            if name == "*":
                found.stars.append(target[0])
            elif target[0] != "__future__":
                found.imports.setdefault(name, []).append(target)


def _run(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements that have an effect when the module is imported."""
    for statement in body:
        if isinstance(statement, ast.If) and is_type_checking(statement.test):
            yield from _run(statement.orelse)
        elif not (does_nothing(statement) or isinstance(statement, (ast.Import, ast.ImportFrom))):
            yield statement


def _sort(found: _Statements, statements: Sequence[ast.stmt]) -> None:
    """Assigns each statement to the names that it binds or changes."""
    bound = [set(bound_names([statement], found.package)) for statement in statements]
    own = set().union(*bound) if bound else set()
    for statement, names in zip(statements, bound, strict=True):
        if _is_program(statement):
            found.by_name.setdefault(PROGRAM, []).append(statement)
            continue
        changed, anything = _changed(statement, own)
        for name in sorted(names | changed):
            found.by_name.setdefault(name, []).append(statement)
        if anything or not (names or changed):
            found.loose.append(statement)


def _changed(statement: ast.stmt, own: set[str]) -> tuple[set[str], bool]:
    """Returns the module's names that a statement changes (`X[0] = 1`, `X.append(1)`), and if it may change others.

    It may change others if it calls something else, e.g. `register(X)`.
    """
    changed: set[str] = set()
    anything = False
    if isinstance(statement, SCOPES):
        return changed, anything
    for node in own_nodes([statement]):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            name = root_name(node)
        elif isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
            called = node.value.func if isinstance(node.value, ast.Call) else None
            name = root_name(called) if isinstance(called, ast.Attribute) else ""
        else:
            continue
        changed |= {name} & own
        anything = anything or name not in own
    return changed, anything


def root_name(node: ast.expr) -> str:
    """Returns `a` for `a.b[0].c`; empty if the expression does not start with a name."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_program(statement: ast.stmt) -> bool:
    """Whether the statement is `if __name__ == "__main__":`."""
    if not (isinstance(statement, ast.If) and isinstance(statement.test, ast.Compare)):
        return False
    return isinstance(statement.test.left, ast.Name) and statement.test.left.id == "__name__"


def _data_files(statements: Iterable[ast.stmt], module: str) -> Iterator[str]:
    """Yields the files named in `DATA_FILES`. Raises ValueError if it is not a plain tuple of texts."""
    for statement in statements:
        value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
        try:
            names = ast.literal_eval(value) if value is not None else None
        except ValueError:
            names = None
        if not (isinstance(names, tuple) and all(isinstance(name, str) for name in names)):
            raise ValueError(f"DATA_FILES of {module} has to be a tuple of plain texts")
        yield from names

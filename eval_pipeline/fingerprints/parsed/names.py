"""Collects the references in a piece of source: paths for every name it reads, resolved through annotated types.

Types are followed loosely: iterating over, calling, indexing or unpacking a value keeps its classes, so that `for turn
in turns` with `turns: Sequence[Turn]` gives a `Turn`. This may find too many classes, which does no harm: attributes
that a class does not have are ignored.
"""

import ast
import builtins
import re
from collections.abc import Collection, Iterable, Iterator

from eval_pipeline.fingerprints.parsed.bindings import (
    FUNCTIONS,
    Binding,
    BoundNames,
    bound_names,
    comprehension_names,
    parameters,
)
from eval_pipeline.fingerprints.parsed.records import OWN_PLACE
from eval_pipeline.fingerprints.parsed.trees import does_nothing

_PLACE = re.compile(r"[A-Za-z_]\w*(\.\w+)+(:[A-Za-z_][\w.]*)?")
_PLACE_START = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*)(\.|:\w*)")
_MOST_TYPES, _MOST_STEPS = 12, 6
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_Scoped = ast.Lambda | ast.ClassDef | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_OF_PARTS = (ast.BoolOp, ast.IfExp, ast.BinOp, ast.Tuple, ast.List, ast.Set, ast.Dict)
_BUILTINS = frozenset(dir(builtins))


class Names:
    """Collects the references of one definition.

    Attributes:
        found: the paths so far.
    """

    def __init__(self, package: str, known: Collection[str], *, anything: bool = False) -> None:
        """Creates an empty collector.

        Args:
            package: package of the module, for relative imports.
            known: names that the module defines or imports.
            anything: whether a star import may add further names.
        """
        self.found: set[str] = set()
        self._package, self._known, self._anything = package, known, anything

    def statements(self, nodes: Iterable[ast.AST], scope: BoundNames | None, *, in_class: bool = False) -> None:
        """Collects the references of statements."""
        for node in nodes:
            self._visit(node, scope, in_class)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: BoundNames | None, *, method: bool) -> None:
        """Collects the references of a function, including decorators and defaults."""
        self.statements([*node.decorator_list, *_defaults(node.args)], scope)
        self.statements(node.body, self.inside(node, scope, method=method))

    def inside(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: BoundNames | None, *, method: bool
    ) -> BoundNames:
        """Returns the scope of a function's body."""
        names = bound_names(node.body, self._package)
        given = parameters(node.args)
        for parameter in given:
            names.setdefault(parameter.arg, []).append(Binding(parameter.annotation))
        static = any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in node.decorator_list)
        if method and given and not static:
            names[given[0].arg].append(Binding(is_self=True))
        return BoundNames(names, scope)

    def annotation(self, node: ast.expr | None, scope: BoundNames | None) -> list[str]:
        """Returns paths to all classes named anywhere in an annotation."""
        return [f"@{name}" for name in self._annotated(node, scope)]

    def field(self, node: ast.expr, scope: BoundNames | None) -> None:
        """Collects the classes named in the annotation of a class's field."""
        for name in self._annotated(node, scope):
            self.found.add("?" + name)

    def types(self, node: ast.AST | None, scope: BoundNames | None) -> tuple[str, ...]:
        """Returns paths to what an expression may be, or may be an instance of."""
        return tuple(dict.fromkeys(self._types(node, scope)))[:_MOST_TYPES]

    def _annotated(self, node: ast.expr | None, scope: BoundNames | None) -> Iterator[str]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value.strip(), mode="eval").body
            except SyntaxError:
                return
        if isinstance(node, ast.Subscript):
            base = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
            if base in {"Literal", "Callable"}:  # plain values, and functions that others call
                return
            yield from self._annotated(node.value, scope)
            yield from self._annotated(node.slice, scope)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            if path := self._chain(node, scope):
                yield path
        elif node is not None:
            for inner in ast.iter_child_nodes(node):
                if isinstance(inner, ast.expr):
                    yield from self._annotated(inner, scope)

    def _chain(self, node: ast.expr, scope: BoundNames | None) -> str | None:
        """Returns `a.b.c` for an attribute chain, or `=module:b.c` if the function imports `a`."""
        steps: list[str] = []
        while isinstance(node, ast.Attribute):
            steps.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        local = scope.find(node.id) if scope else None
        if local is None:
            return ".".join([node.id, *steps]) if self._is_known(node.id) else None
        for binding in local[1]:
            if binding.target:
                module, name = binding.target
                return f"={module}:" + ".".join([*([name] if name else []), *steps])
        return None

    def _is_known(self, name: str) -> bool:
        return name in self._known or (self._anything and name not in _BUILTINS)

    def _types(self, node: ast.AST | None, scope: BoundNames | None) -> Iterator[str]:
        if isinstance(node, ast.Name):
            yield from self._name(node.id, scope)
        elif isinstance(node, ast.Attribute):
            paths = self.types(node.value, scope)
            yield from (f"{path}|{node.attr}" for path in paths if path.count("|") < _MOST_STEPS)
        elif isinstance(node, ast.Call):
            yield from self._call(node, scope)
        elif isinstance(node, _COMPREHENSIONS):
            inner = BoundNames(comprehension_names(node.generators), scope)
            yield from self._types(node.value if isinstance(node, ast.DictComp) else node.elt, inner)
        elif isinstance(node, (ast.Subscript, ast.Await, ast.Starred, ast.NamedExpr)):
            yield from self._types(node.value, scope)
        elif isinstance(node, _OF_PARTS):
            test = getattr(node, "test", None)
            yield from (
                path for part in ast.iter_child_nodes(node) if part is not test for path in self._types(part, scope)
            )

    def _name(self, name: str, scope: BoundNames | None) -> tuple[str, ...]:
        """Returns paths to what a name may be: the module's own, or what the bindings of a local name give."""
        local = scope.find(name) if scope else None
        if local is None:
            return (name,) if self._is_known(name) or name in OWN_PLACE else ()
        owner, bindings = local
        if name not in owner.known:
            owner.known[name] = ()  # stops recursion, as a binding may refer to its own name
            found = [path for binding in bindings for path in self._bound(binding, owner)]
            owner.known[name] = tuple(dict.fromkeys(found))[:_MOST_TYPES]
        return owner.known[name]

    def _bound(self, binding: Binding, scope: BoundNames) -> Iterator[str]:
        if binding.is_self:
            yield "%"
        if binding.target:
            yield f"={binding.target[0]}:{binding.target[1] or ''}"
        yield from self.annotation(binding.annotation, scope)
        yield from self._types(binding.value, scope)

    def _call(self, node: ast.Call, scope: BoundNames | None) -> Iterator[str]:
        """Yields what a call may return: classes returned by the function, or classes of its arguments."""
        called = node.func.id if isinstance(node.func, ast.Name) else ""
        if called == "super" and not node.args:
            yield "^"
        elif called == "cast" and len(node.args) == 2:
            yield from self.annotation(node.args[0], scope)
        else:
            yield from self._types(node.func, scope)
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                yield from self._types(argument, scope)

    def _visit(self, node: ast.AST, scope: BoundNames | None, in_class: bool = False) -> None:
        if isinstance(node, ast.stmt) and does_nothing(node):
            return
        if isinstance(node, FUNCTIONS):
            self.function(node, scope, method=in_class)
        elif isinstance(node, (ast.Lambda, ast.ClassDef, *_COMPREHENSIONS)):
            self._scoped(node, scope)
        elif isinstance(node, ast.AnnAssign):
            self.statements([node.target, *([node.value] if node.value else [])], scope)
            if in_class:
                self.field(node.annotation, scope)
        elif isinstance(node, ast.Attribute):
            self._attribute(node, scope)
        else:
            self._expression(node, scope)
            done = self._call_parts(node, scope) if isinstance(node, ast.Call) else ()
            for child in ast.iter_child_nodes(node):
                if child not in done:
                    self._visit(child, scope, in_class)

    def _scoped(self, node: _Scoped, scope: BoundNames | None) -> None:
        """Collects the references of nodes with a scope of their own: lambdas, inner classes and comprehensions."""
        if isinstance(node, ast.Lambda):
            self._lambda(node, scope, [])
        elif isinstance(node, ast.ClassDef):
            self.statements([*node.decorator_list, *node.bases, *node.keywords], scope)
            inner = BoundNames(bound_names(node.body, self._package), scope, is_class=True)
            self.statements(node.body, inner, in_class=True)
        else:
            self.statements(ast.iter_child_nodes(node), BoundNames(comprehension_names(node.generators), scope))

    def _attribute(self, node: ast.Attribute, scope: BoundNames | None) -> None:
        """Collects `a.b.c` as a whole, since the names in it are not used separately."""
        self.found.update(self.types(node, scope))
        start: ast.expr = node
        while isinstance(start, ast.Attribute):
            start = start.value
        if not isinstance(start, ast.Name):
            self._visit(start, scope)

    def _expression(self, node: ast.AST, scope: BoundNames | None) -> None:
        if isinstance(node, ast.Name):
            # a function that stores under a non-local name changes the module's name (`global`)
            in_function = scope is not None and not scope.is_class
            if isinstance(node.ctx, ast.Load) or (in_function and scope and not scope.find(node.id)):
                self.found.update(self._name(node.id, scope))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if _PLACE.fullmatch(node.value):
                self.found.add("'" + node.value)
        elif isinstance(node, ast.JoinedStr):
            self._started_place(node)

    def _lambda(self, node: ast.Lambda, scope: BoundNames | None, given: list[str]) -> None:
        """Collects the references of a lambda.

        Other arguments of the same call may be passed to it (`sorted(xs, key=...)`).
        """
        self.statements(_defaults(node.args), scope)
        inner = BoundNames({parameter.arg: [] for parameter in parameters(node.args)}, scope)
        for parameter in parameters(node.args):
            inner.known[parameter.arg] = tuple(dict.fromkeys(given))[:_MOST_TYPES]
        self._visit(node.body, inner)

    def _started_place(self, node: ast.JoinedStr) -> None:
        """Collects f-strings that name code: `f"package.module:read_{x}"` may be any name of the module, and so on."""
        first = node.values[0] if node.values else None
        if isinstance(first, ast.Constant) and (start := _PLACE_START.match(str(first.value))):
            self.found.add("'" + start[1] + (":*" if start[2] != "." else ".*"))

    def _call_parts(self, node: ast.Call, scope: BoundNames | None) -> list[ast.AST]:
        """Collects the references of special calls; returns the parts of the call that are handled.

        `getattr(x, "name")` is treated as `x.name`; `getattr(x, name)`, `vars(x)` and `globals()` may access anything.
        """
        given = [path for one in node.args for path in self._types(one, scope)]
        lambdas = [one for one in node.args if isinstance(one, ast.Lambda)]
        named = [one for one in node.keywords if isinstance(one.value, ast.Lambda)]
        for one in (*lambdas, *(keyword.value for keyword in named)):
            assert isinstance(one, ast.Lambda)
            self._lambda(one, scope, given)
        called = node.func.id if isinstance(node.func, ast.Name) else ""
        if called == "globals":
            self.found.add("*")
        elif called in {"getattr", "vars"} and node.args:
            name = node.args[1] if len(node.args) > 1 else None
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                self._attribute(ast.Attribute(node.args[0], name.value, ast.Load()), scope)
                return [*lambdas, *named, node.args[0]]
            self.found.update("*" + path for path in self.types(node.args[0], scope))
        return [*lambdas, *named]


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [default for default in (*arguments.defaults, *arguments.kw_defaults) if default is not None]

"""Other ways to write the same statements, whatever they compute: sound for programs and for functions."""

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from random import Random

_UNREADABLE = ("locals(", "globals(", "eval(", "exec(", "query(", "@")
"""With these, names are also used in texts, and are not changed."""

Fresh = Callable[[str], str]
"""Makes a name, from its beginning, that the code does not use."""
Parts = tuple[list[ast.stmt], ast.expr]
Extract = Callable[[ast.expr, Fresh], Parts | None]
"""Statements that come first, and what is left of an expression; None where the rule does not apply."""


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def named(value: ast.expr, fresh: Fresh) -> Parts | None:
    """`return f(x)` is `answer = f(x)` and `return answer`."""
    if isinstance(value, ast.Name | ast.Constant):
        return None
    name = fresh("answer")
    return [_assign(name, value)], _load(name)


def unchained(value: ast.expr, fresh: Fresh) -> Parts | None:
    """`a.f().g()` is `step = a.f()` and `step.g()`."""
    outer = value
    while isinstance(outer, ast.Call | ast.Subscript | ast.Attribute):
        inner = outer.func if isinstance(outer, ast.Call) else outer.value
        if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Call | ast.Subscript):
            name = fresh("step")
            first, inner.value = inner.value, _load(name)
            return [_assign(name, first)], value
        outer = inner
    return None


def defined(value: ast.expr, fresh: Fresh) -> Parts | None:
    """`f(lambda x: x + 1)` is `def step(x): return x + 1` and `f(step)`."""
    if any(isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) for node in ast.walk(value)):
        return None  # it may use the variable of the loop
    for node in ast.walk(value):
        for place, one in enumerate(node.args if isinstance(node, ast.Call) else []):
            if isinstance(one, ast.Lambda) and isinstance(node, ast.Call):
                name = fresh("step")
                node.args[place] = _load(name)
                return [ast.FunctionDef(name, one.args, [ast.Return(one.body)], [], None)], value
        if isinstance(node, ast.Lambda):
            return None
    return None


def looped(value: ast.expr, fresh: Fresh) -> Parts | None:
    """`[f(x) for x in y if g(x)]` is a loop that appends."""
    match value:
        case ast.ListComp(elt=item, generators=[ast.comprehension(target=ast.Name(id=old), iter=many, ifs=tests)]):
            found, new = fresh("items"), fresh("item")
            inner = [_renamed(one, {old: new}) for one in (item, *tests)]
            append = ast.Call(ast.Attribute(_load(found), "append", ast.Load()), [inner[0]], [])
            body: list[ast.stmt] = [ast.Expr(append)]
            for test in inner[1:][::-1]:
                body = [ast.If(test, body, [])]
            loop = ast.For(ast.Name(new, ast.Store()), many, body, [])
            return [_assign(found, ast.List([], ast.Load())), loop], _load(found)
    return None


_EXTRACTS: tuple[Extract, ...] = (named, unchained, defined, looped)


def merged_branches(statement: ast.stmt) -> list[ast.stmt] | None:
    """`if c: return a` with `else: return b` is `return a if c else b`."""
    match statement:
        case ast.If(
            test=test, body=[ast.Return(value=ast.expr() as one)], orelse=[ast.Return(value=ast.expr() as other)]
        ):
            return [ast.Return(ast.IfExp(test, one, other))]
    return None


def without_else(statement: ast.stmt) -> list[ast.stmt] | None:
    """After a `return`, what was in `else` follows."""
    match statement:
        case ast.If(test=test, body=[*_, ast.Return()] as body, orelse=[_, *_] as rest):
            return [ast.If(test, body, []), *rest]
    return None


def wrapped(function: ast.FunctionDef, fresh: Fresh) -> list[ast.stmt] | None:
    """The body in a function of its own, which is called with the same arguments."""
    given = function.args
    if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs:
        return None
    name = fresh("inner")
    arguments = [ast.arg(one.arg) for one in given.args]
    inner = ast.FunctionDef(name, ast.arguments([], arguments, None, [], [], None, []), function.body, [], None)
    call = ast.Call(_load(name), [_load(one.arg) for one in arguments], [])
    return [inner, ast.Return(call)]


def copied(function: ast.FunctionDef, fresh: Fresh) -> list[ast.stmt] | None:
    """The function works on copies of its arguments."""
    module = fresh("copies")
    copies: list[ast.stmt] = [ast.Import([ast.alias("copy", module)])]
    for one in function.args.args:
        call = ast.Call(ast.Attribute(_load(module), "deepcopy", ast.Load()), [_load(one.arg)], [])
        copies.append(_assign(one.arg, call))
    return [*copies, *function.body]


def renamed_locals(function: ast.FunctionDef, fresh: Fresh) -> list[ast.stmt] | None:
    """Other names for the variables of the function."""
    if any(isinstance(node, ast.Global | ast.Nonlocal | ast.Import | ast.ImportFrom) for node in ast.walk(function)):
        return None
    given = {one.arg for one in function.args.args}
    stored = {
        node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    } - given
    names = {name: fresh(f"my_{name}") for name in sorted(stored)}
    return [_renamed(one, names) for one in function.body] if names else None


_FUNCTIONS = (wrapped, copied, renamed_locals)


def _renamed(node: ast.AST, names: dict[str, str]) -> ast.AST:
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in names:
            part.id = names[part.id]
        if isinstance(part, ast.arg) and part.arg in names:
            part.arg = names[part.arg]
    return node


def restated(tree: ast.Module, rng: Random, share: float = 0.5) -> ast.Module:
    """Returns a copy of a program in which some statements and functions are written in another way."""
    code = ast.unparse(tree)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}

    def fresh(start: str) -> str:
        name = next(name for name in (start, *(f"{start}_{n}" for n in range(1, 999))) if name not in used)
        used.add(name)
        return name

    rules = [rule for rule in _FUNCTIONS if rule is not renamed_locals or not any(one in code for one in _UNREADABLE)]
    found = copy.deepcopy(tree)
    found.body = [*_block(found.body, rng, share, fresh, rules)]
    return ast.fix_missing_locations(found)


def _block(
    body: Sequence[ast.stmt], rng: Random, share: float, fresh: Fresh, rules: Sequence[Callable[..., object]]
) -> Iterator[ast.stmt]:
    for statement in body:
        for part in ("body", "orelse"):
            inner = getattr(statement, part, None)
            if isinstance(inner, list):
                setattr(statement, part, [*_block(inner, rng, share, fresh, rules)])
        if isinstance(statement, ast.FunctionDef):
            for rule in rng.sample(rules, len(rules)):
                if rng.random() < share and (changed := rule(statement, fresh)):
                    statement.body = changed  # type: ignore[assignment]
            yield statement
            continue
        yield from _statement(statement, rng, share, fresh)


def _statement(statement: ast.stmt, rng: Random, share: float, fresh: Fresh) -> Iterator[ast.stmt]:
    for branches in (merged_branches, without_else):
        if rng.random() < share and (changed := branches(statement)):
            yield from changed
            return
    if isinstance(statement, ast.Return | ast.Assign | ast.Expr) and statement.value is not None:
        for extract in rng.sample(_EXTRACTS, len(_EXTRACTS)):
            if extract is named and isinstance(statement, ast.Expr):
                continue  # e.g. a docstring
            if rng.random() < share and (parts := extract(statement.value, fresh)):
                yield from parts[0]
                statement.value = parts[1]
    yield statement

"""Other ways to write the same code, by sound rules: right answers that must not be refuted."""

import ast
import copy
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from eval_pipeline_tests.tracks.pandas_code.restating import restated

_COMPARED = {">": "gt", ">=": "ge", "<": "lt", "<=": "le", "==": "eq", "!=": "ne"}
_TAKEN = frozenset({"size", "count", "rank", "name", "first", "last", "range", "rename"})
_KINDS: dict[str, Callable[[ast.AST], bool]] = {
    "_frame": lambda node: isinstance(node, ast.Name),
    "_text": lambda node: isinstance(node, ast.Constant) and isinstance(node.value, str),
    "_constant": lambda node: isinstance(node, ast.Constant),
    "_mask": lambda node: isinstance(node, ast.Compare) or isinstance(getattr(node, "op", None), ast.BitAnd),
}
"""What some names in patterns stand for; others that begin with `_` for any expression, `**_words` for any words."""

Rule = Callable[[ast.AST], ast.AST | None]
"""What a node becomes; None where the rule does not apply."""


def _rule(*ways: tuple[str, str]) -> Rule:
    """The rule that what looks like one expression is written as the other."""
    parsed = [tuple(ast.parse(text, mode="eval").body for text in way) for way in ways]

    def rule(node: ast.AST) -> ast.AST | None:
        for pattern, other in parsed:
            found: dict[str, Any] = {}
            if _fits(pattern, node, found):
                return _Filled(found).visit(copy.deepcopy(other))
        return None

    return rule


def _fits(pattern: Any, node: Any, found: dict[str, Any]) -> bool:
    match pattern:
        case ast.Name(id=name) if name.startswith("_"):
            found[name] = node
            return _KINDS.get(name, lambda _: True)(node)
        case [ast.keyword(arg=None, value=ast.Name(id=name))]:
            found[name] = node
            return True
        case list():
            return len(pattern) == len(node) and all(_fits(*pair, found) for pair in zip(pattern, node, strict=True))
        case ast.AST():
            fields = pattern._fields
            return type(pattern) is type(node) and all(
                _fits(getattr(pattern, name), getattr(node, name), found) for name in fields
            )
    return bool(pattern == node)


class _Filled(ast.NodeTransformer):
    def __init__(self, found: dict[str, Any]) -> None:
        self._found = found

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return copy.deepcopy(self._found.get(node.id, node))

    def visit_keyword(self, node: ast.keyword) -> Any:
        return copy.deepcopy(self._found["_words"]) if node.arg is None else self.generic_visit(node)


def attribute(node: ast.AST) -> ast.AST | None:
    """`df["a"]` is `df.a`."""
    match node:
        case ast.Subscript(ctx=ast.Load(), value=ast.Name() as owner, slice=ast.Constant(value=str() as column)):
            return ast.Attribute(owner, column, ast.Load()) if column.isidentifier() and column not in _TAKEN else None
    return None


def queried(node: ast.AST) -> ast.AST | None:
    """`df[df["a"] > 3]` is `df.query("`a` > 3")`."""
    match node:
        case ast.Subscript(
            value=ast.Name(id=owner) as frame,
            slice=ast.Compare(
                left=ast.Subscript(value=ast.Name(id=same), slice=ast.Constant(value=str() as column)),
                comparators=[ast.Constant()],
            ) as test,
        ) if owner == same:
            text = ast.unparse(test).replace(f"{owner}['{column}']", f"`{column}`")
            return ast.Call(ast.Attribute(frame, "query", ast.Load()), [ast.Constant(text)], [])
    return None


def fetched(node: ast.AST) -> ast.AST | None:
    """`x.f(3)` is `getattr(x, "f")(3)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=given, keywords=words):
            fetch = ast.Call(ast.Name("getattr", ast.Load()), [owner, ast.Constant(name)], [])
            return ast.Call(fetch, given, words)
    return None


def spread(node: ast.AST) -> ast.AST | None:
    """`f(a=3)` is `f(**{"a": 3})`."""
    match node:
        case ast.Call(func=function, args=given, keywords=[_, *_] as words):
            names = [ast.Constant(word.arg) for word in words if word.arg is not None]
            if len(names) == len(words):
                pairs = ast.Dict([*names], [word.value for word in words])
                return ast.Call(function, given, [ast.keyword(None, pairs)])
    return None


def unpacked(node: ast.AST) -> ast.AST | None:
    """`f(a)` is `f(*(a,))`."""
    match node:
        case ast.Call(func=function, args=[_, *_] as given, keywords=words):
            if not any(isinstance(one, ast.Starred | ast.GeneratorExp) for one in given):
                return ast.Call(function, [ast.Starred(ast.Tuple(given, ast.Load()), ast.Load())], words)
    return None


def literal(node: ast.AST) -> ast.AST | None:
    """`[a, b]` is `list((a, b))`, and `{"a": b}` is `dict((("a", b),))`."""
    match node:
        case ast.List(elts=[_, *_] as items, ctx=ast.Load()):
            return ast.Call(ast.Name("list", ast.Load()), [ast.Tuple(items, ast.Load())], [])
        case ast.Dict(keys=[_, *_] as keys, values=values) if None not in keys:
            pairs = [ast.Tuple([key, value], ast.Load()) for key, value in zip(keys, values, strict=True) if key]
            return ast.Call(ast.Name("dict", ast.Load()), [ast.Tuple([*pairs], ast.Load())], [])
    return None


_OF_FRAMES = (
    _rule(("_frame[_text]", "_frame.loc[:, _text]")),
    _rule(
        *(
            (f"_a[_b] {op} _c[_d]", f"_a[_b].{name}(_c[_d])")
            for op, name in {"*": "mul", "-": "sub", "/": "div"}.items()
        )
    ),
)
"""Rules that would fail for a row, or for single values."""
_OF_PROGRAMS = (
    attribute,
    _rule(*((f"_a {op} _b", f"_a.{name}(_b)") for op, name in _COMPARED.items())),
    _rule(("_a & _b", "~(~_a | ~_b)")),
    _rule(("_a & _b", "_b & _a")),
    queried,
    _rule(("_frame[_mask]", "_frame.loc[_mask]")),
    _rule(("_mask.sum()", "np.count_nonzero(_mask)"), ("len(_a)", "_a.shape[0]")),
    _rule(("_a.notna()", "~_a.isna()")),
    _rule(("_a.isin([_b, _c])", "(_a == _b) | (_a == _c)")),
    _rule(*((f"_a.{name}()", f"_a.agg({name!r})") for name in ("sum", "mean", "max", "min"))),
    _rule(("_a.median()", "_a.quantile(0.5)")),
    _rule(
        ("_a.groupby(_constant)[_text].sum()", "_a.pivot_table(index=_constant, values=_text, aggfunc='sum')[_text]")
    ),
    _rule(
        ("_a.nlargest(_b, _c)", "_a.sort_values(_c, ascending=False).head(_b)"),
        ("_a.nsmallest(_b, _c)", "_a.sort_values(_c, ascending=True).head(_b)"),
    ),
    _rule(("_a.merge(_b, **_words)", "pd.merge(_a, _b, **_words)")),
    _rule(("_a.merge(_b, on=_c)", "_b.merge(_a, on=_c)")),
    _rule(("_a.dt.year == _constant", "_a.dt.strftime('%Y') == str(_constant)")),
)
_ANY_CODE = (
    *(fetched, spread, unpacked, literal),
    _rule(
        *((f"_a.{one}()", f"_a.{other}()") for one, other in (("isna", "isnull"), ("notna", "notnull"))),
        *((f"_a.{one}()", f"_a.{other}()") for one, other in (("isnull", "isna"), ("notnull", "notna"))),
        ("_a.values", "_a.to_numpy()"),
    ),
    _rule(("_a.head(_b)", "_a.iloc[:_b]")),
    _rule(("_a.drop(_b, axis=1)", "_a.drop(columns=_b)")),
    _rule(("pd.merge(_a, _b, **_words)", "_a.merge(_b, **_words)")),
    _rule(("_a.columns.tolist()", "list(_a.columns)")),
)
_IN_A_FUNCTION = 0.25


def rewrites(code: str, tables: tuple[str, ...], count: int, seed: int) -> list[str]:
    """Returns up to so many other texts of code that sets `result`, each by some rules at some places.

    A few also turn all rows about.
    """
    names = ("df",) if len(tables) == 1 else tables

    def surrounded(text: str, rng: Random) -> str:
        if rng.random() < _IN_A_FUNCTION:
            text = "\n".join([*(f"{name} = {name}.sample(frac=1, random_state={seed})" for name in names), text])
        if rng.random() < _IN_A_FUNCTION:
            inner, given = text.replace("\n", "\n    "), ", ".join(names)
            text = f"def answer({given}):\n    {inner}\n    return result\nresult = answer({given})"
        return text

    return _texts(code, count, seed, surrounded, [*_OF_FRAMES, *_OF_PROGRAMS])


def program_rewrites(code: str, count: int, seed: int) -> list[str]:
    """Returns up to so many other texts of a program whose names are all kept, such as functions that tests call."""
    return _texts(code, count, seed, lambda text, rng: text, _OF_PROGRAMS)


def _texts(
    code: str, count: int, seed: int, surrounded: Callable[[str, Random], str], rules: Sequence[Rule]
) -> list[str]:
    rng = Random(seed)
    found: dict[str, None] = {}
    given = ast.unparse(ast.parse(code))
    for _ in range(count * 100):
        tree = ast.parse(code)
        for _ in range(rng.randint(0, 3)):
            tree = restated(tree, rng)
        some = [*rng.sample(rules, rng.randint(1, 6)), *rng.sample(_ANY_CODE, rng.randint(0, 3))]
        text = surrounded(ast.unparse(ast.fix_missing_locations(_Some(rng, some).visit(tree))), rng)
        if text != given:
            found[text] = None
        if len(found) == count:
            break
    return [*found]


class _Some(ast.NodeTransformer):
    def __init__(self, rng: Random, rules: list[Rule]) -> None:
        self._rng, self._rules = rng, rules

    def visit(self, node: ast.AST) -> ast.AST:
        node = self.generic_visit(node)
        for rule in self._rules:
            changed = rule(copy.deepcopy(node))
            if changed is not None and self._rng.random() < 0.7:
                return changed
        return node

"""Other ways to write the same code, by sound rules: right answers that must not be refuted."""

import ast
import copy
from collections.abc import Callable, Mapping, Sequence
from random import Random

from eval_pipeline_tests.tracks.pandas_code.restating import restated

_METHODS: Mapping[type[ast.cmpop], str] = {
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
_ARITHMETIC: Mapping[type[ast.operator], str] = {ast.Mult: "mul", ast.Sub: "sub", ast.Div: "div"}
_SYNONYMS = {"isna": "isnull", "isnull": "isna", "notna": "notnull", "notnull": "notna"}
_TAKEN = frozenset({"size", "count", "rank", "name", "first", "last", "range", "rename"})

Rule = Callable[[ast.AST], ast.AST | None]
"""What a node becomes; None where the rule does not apply."""


def _method(owner: ast.expr, name: str, *arguments: ast.expr, **named: ast.expr) -> ast.Call:
    words = [ast.keyword(key, value) for key, value in named.items()]
    return ast.Call(ast.Attribute(owner, name, ast.Load()), list(arguments), words)


def _numpy(name: str, *arguments: ast.expr) -> ast.Call:
    return _method(ast.Name("np", ast.Load()), name, *arguments)


def attribute(node: ast.AST) -> ast.AST | None:
    """`df["a"]` is `df.a`."""
    match node:
        case ast.Subscript(ctx=ast.Load(), value=ast.Name() as owner, slice=ast.Constant(value=str() as column)):
            return ast.Attribute(owner, column, ast.Load()) if column.isidentifier() and column not in _TAKEN else None
    return None


def located(node: ast.AST) -> ast.AST | None:
    """`df["a"]` is `df.loc[:, "a"]`."""
    match node:
        case ast.Subscript(ctx=ast.Load(), value=ast.Name() as owner, slice=ast.Constant(value=str()) as column):
            place = ast.Tuple([ast.Slice(), column], ast.Load())
            return ast.Subscript(ast.Attribute(owner, "loc", ast.Load()), place, ast.Load())
    return None


def comparison(node: ast.AST) -> ast.AST | None:
    """`x > 3` is `x.gt(3)`."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _METHODS:
            return _method(left, _METHODS[type(op)], right)
    return None


def negated(node: ast.AST) -> ast.AST | None:
    """`a & b` is `~(~a | ~b)`."""
    match node:
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            either = ast.BinOp(ast.UnaryOp(ast.Invert(), left), ast.BitOr(), ast.UnaryOp(ast.Invert(), right))
            return ast.UnaryOp(ast.Invert(), either)
    return None


def turned(node: ast.AST) -> ast.AST | None:
    """`a & b` is `b & a`."""
    match node:
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            return ast.BinOp(right, ast.BitAnd(), left)
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
            return _method(frame, "query", ast.Constant(text))
    return None


def masked(node: ast.AST) -> ast.AST | None:
    """`df[mask]` is `df.loc[mask]`."""
    match node:
        case ast.Subscript(ctx=ast.Load(), value=ast.Name() as frame, slice=ast.Compare() | ast.BinOp() as mask):
            return ast.Subscript(ast.Attribute(frame, "loc", ast.Load()), mask, ast.Load())
    return None


def counted(node: ast.AST) -> ast.AST | None:
    """`int(mask.sum())` is `int(np.count_nonzero(mask))` where the mask is a comparison."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Compare() | ast.BinOp(op=ast.BitAnd()) as mask, attr="sum"), args=[]
        ):
            return _numpy("count_nonzero", mask)
        case ast.Call(func=ast.Name(id="len"), args=[rows]):
            return ast.Subscript(ast.Attribute(rows, "shape", ast.Load()), ast.Constant(0), ast.Load())
    return None


def missing(node: ast.AST) -> ast.AST | None:
    """`x.notna()` is `~x.isna()`."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="notna"), args=[]):
            return ast.UnaryOp(ast.Invert(), _method(inner, "isna"))
    return None


def spelled(node: ast.AST) -> ast.AST | None:
    """`x.isin([a, b])` is `(x == a) | (x == b)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="isin"), args=[ast.List(elts=[one, other])]):
            first, second = (ast.Compare(inner, [ast.Eq()], [value]) for value in (one, other))
            return ast.BinOp(first, ast.BitOr(), second)
    return None


def aggregated(node: ast.AST) -> ast.AST | None:
    """`x.sum()` is `x.agg("sum")`."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=inner, attr="sum" | "mean" | "max" | "min" as name), args=[], keywords=[]
        ):
            return _method(inner, "agg", ast.Constant(name))
    return None


def halved(node: ast.AST) -> ast.AST | None:
    """`x.median()` is `x.quantile(0.5)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="median"), args=[]):
            return _method(inner, "quantile", ast.Constant(0.5))
    return None


def pivoted(node: ast.AST) -> ast.AST | None:
    """`df.groupby("k")["v"].sum()` is a pivot table's column."""
    match node:
        case ast.Call(
            func=ast.Attribute(
                value=ast.Subscript(
                    value=ast.Call(
                        func=ast.Attribute(value=frame, attr="groupby"), args=[ast.Constant() as key], keywords=[]
                    ),
                    slice=ast.Constant(value=str()) as column,
                ),
                attr="sum",
            ),
            args=[],
        ):
            table = _method(frame, "pivot_table", index=key, values=column, aggfunc=ast.Constant("sum"))
            return ast.Subscript(table, column, ast.Load())
    return None


def sorted_first(node: ast.AST) -> ast.AST | None:
    """`df.nlargest(3, "a")` is the head of the sorted rows."""
    match node:
        case ast.Call(func=ast.Attribute(value=frame, attr="nlargest" | "nsmallest" as name), args=[count, key]):
            rows = _method(frame, "sort_values", key, ascending=ast.Constant(name == "nsmallest"))
            return _method(rows, "head", count)
    return None


def arithmetic(node: ast.AST) -> ast.AST | None:
    """`a * b` is `a.mul(b)` of columns."""
    match node:
        case ast.BinOp(left=ast.Subscript() as left, op=op, right=ast.Subscript() as right) if type(op) in _ARITHMETIC:
            return _method(left, _ARITHMETIC[type(op)], right)
    return None


def merged(node: ast.AST) -> ast.AST | None:
    """`a.merge(b)` is `pd.merge(a, b)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=left, attr="merge"), args=[right], keywords=words) if not (
            isinstance(left, ast.Name) and left.id == "pd"
        ):
            return ast.Call(ast.Attribute(ast.Name("pd", ast.Load()), "merge", ast.Load()), [left, right], words)
    return None


def swapped(node: ast.AST) -> ast.AST | None:
    """`a.merge(b, on="k")` is `b.merge(a, on="k")`."""
    match node:
        case ast.Call(func=ast.Attribute(value=left, attr="merge"), args=[right], keywords=[ast.keyword(arg="on")]):
            return ast.Call(ast.Attribute(right, "merge", ast.Load()), [left], node.keywords)
    return None


def yearly(node: ast.AST) -> ast.AST | None:
    """`x.dt.year` is the number in the text of the date."""
    match node:
        case ast.Compare(
            left=ast.Attribute(value=ast.Attribute(value=dates, attr="dt"), attr="year"),
            ops=[ast.Eq()] as ops,
            comparators=[ast.Constant(value=int() as year)],
        ):
            text = _method(ast.Attribute(dates, "dt", ast.Load()), "strftime", ast.Constant("%Y"))
            return ast.Compare(text, ops, [ast.Constant(str(year))])
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


def synonym(node: ast.AST) -> ast.AST | None:
    """`x.isna()` is `x.isnull()`, and the like; `x.values` is `x.to_numpy()`."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) as function) if name in _SYNONYMS:
            function.attr = _SYNONYMS[name]
            return node
        case ast.Attribute(value=owner, attr="values", ctx=ast.Load()):
            return _method(owner, "to_numpy")
    return None


def sliced(node: ast.AST) -> ast.AST | None:
    """`x.head(n)` is `x.iloc[:n]`."""
    match node:
        case ast.Call(func=ast.Attribute(value=rows, attr="head"), args=[count], keywords=[]):
            return ast.Subscript(ast.Attribute(rows, "iloc", ast.Load()), ast.Slice(None, count), ast.Load())
    return None


def dropped(node: ast.AST) -> ast.AST | None:
    """`x.drop(names, axis=1)` is `x.drop(columns=names)`."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr="drop") as function,
            args=[names],
            keywords=[ast.keyword(arg="axis", value=ast.Constant(value=1))],
        ):
            return ast.Call(function, [], [ast.keyword("columns", names)])
    return None


def joined(node: ast.AST) -> ast.AST | None:
    """`pd.merge(a, b)` is `a.merge(b)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="pd"), attr="merge"), args=[left, right], keywords=words):
            return ast.Call(ast.Attribute(left, "merge", ast.Load()), [right], words)
    return None


def listed(node: ast.AST) -> ast.AST | None:
    """`x.columns.tolist()` is `list(x.columns)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="columns") as labels, attr="tolist"), args=[]):
            return ast.Call(ast.Name("list", ast.Load()), [labels], [])
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


RULES: tuple[Rule, ...] = (
    *(attribute, located, comparison, negated, turned, queried, masked, counted, missing, spelled, aggregated),
    *(halved, pivoted, sorted_first, arithmetic, merged, swapped, yearly),
)
_OF_FRAMES = (located, arithmetic)
"""Rules that would fail for a row, or for single values."""
_ANY_CODE: tuple[Rule, ...] = (fetched, spread, unpacked, synonym, sliced, dropped, joined, listed, literal)
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

    return _texts(code, count, seed, surrounded, RULES)


def program_rewrites(code: str, count: int, seed: int) -> list[str]:
    """Returns up to so many other texts of a program whose names are all kept, such as functions that tests call."""
    return _texts(code, count, seed, lambda text, rng: text, [rule for rule in RULES if rule not in _OF_FRAMES])


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

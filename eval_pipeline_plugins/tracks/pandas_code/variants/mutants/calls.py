"""Makes mutants of calls: aggregations, groups, sorting, limits, joins, and omitted steps."""

import ast
import copy
from collections.abc import Iterator, Mapping

from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.mutant import CodeChange, Kind, Known, missing, other

_AGGREGATIONS: Mapping[str, tuple[str, ...]] = {
    "sum": ("mean", "max"),
    "mean": ("median", "sum"),
    "median": ("mean",),
    "max": ("min", "mean"),
    "min": ("max", "mean"),
    "count": ("nunique", "size"),
    "size": ("nunique",),
    "nunique": ("count",),
    "idxmax": ("idxmin",),
    "idxmin": ("idxmax",),
    "first": ("last",),
    "last": ("first",),
    "std": ("var",),
    "var": ("std",),
    "any": ("all",),
    "all": ("any",),
    "cumsum": ("cummax",),
    "corr": ("cov",),
}
_LIMITS: Mapping[str, str] = {"head": "tail", "tail": "head", "nlargest": "nsmallest", "nsmallest": "nlargest"}
_STEPS: Mapping[str, Kind] = {
    **dict.fromkeys(("drop_duplicates", "dropna", "fillna", "ffill", "bfill"), Kind.STEP),
    **dict.fromkeys(("strip", "title", "lower", "upper", "normalize", "abs", "round"), Kind.STEP),
}
_JOINS: Mapping[str, tuple[str, ...]] = {
    "inner": ("left", "outer"),
    "left": ("inner",),
    "right": ("inner",),
    "outer": ("inner",),
}
_GROUPING = frozenset({"groupby", "pivot_table"})
_WINDOWS = frozenset({"rolling", "shift", "diff", "pct_change"})


def call_changes(node: ast.AST, known: Known) -> Iterator[CodeChange]:
    """Yields changes of a call of a method."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return
    name, inner = node.func.attr, node.func.value
    if not isinstance(inner, ast.Name) or inner.id not in ("pd", "np"):
        yield from _aggregated(node, name)
    if name == "sort_values":
        yield from _sorted(node, inner)
    if name == "sort_index":
        yield CodeChange(Kind.SORT, True, missing(_without(node)), node, node, inner)
    if name in _LIMITS:
        yield from _limited(node, name, inner)
    if name in _STEPS:
        whole = inner.value if isinstance(inner, ast.Attribute) and inner.attr in ("str", "dt") else inner
        yield CodeChange(_STEPS[name], True, missing(_without(node)), node, node, whole)
    if name in _GROUPING:
        yield from _grouped(node, known)
    if name == "merge":
        yield from _merged(node)
    if name in _WINDOWS and node.args and isinstance(node.args[0], ast.Constant) and type(node.args[0].value) is int:
        by = _with_argument(node, ast.Constant(node.args[0].value + 1))
        yield CodeChange(Kind.DERIVED, False, other(_without(node), _without(by)), node, node, by)
    yield from _flags(node)


def _aggregated(node: ast.Call, name: str) -> Iterator[CodeChange]:
    for another in _AGGREGATIONS.get(name, ()):
        by = copy.deepcopy(node)
        assert isinstance(by.func, ast.Attribute)
        by.func.attr = another
        yield CodeChange(Kind.AGGREGATION, False, f"`{name}` were `{another}`", node, node, by)
    if name not in ("agg", "aggregate", "transform", "pivot_table", "apply"):
        return
    for part in _function_names(node, name):
        for another in _AGGREGATIONS.get(str(part.value), ()):
            words = f"`{part.value!s}` were `{another}`"
            yield CodeChange(Kind.AGGREGATION, False, words, part, part, ast.Constant(another))


def _function_names(node: ast.Call, name: str) -> Iterator[ast.Constant]:
    """Yields the constants of a call that name functions."""
    places = [word.value for word in node.keywords if name != "pivot_table" or word.arg == "aggfunc"]
    places += node.args if name != "pivot_table" else []
    for place in places:
        match place:
            case ast.Constant():
                yield place
            case ast.Tuple(elts=[_, ast.Constant() as last]):
                yield last
            case ast.Dict(values=values):
                yield from (one for one in values if isinstance(one, ast.Constant))
            case ast.List(elts=elements):
                yield from (one for one in elements if isinstance(one, ast.Constant))


def _sorted(node: ast.Call, inner: ast.expr) -> Iterator[CodeChange]:
    yield CodeChange(Kind.SORT, True, missing(_without(node)), node, node, inner)
    for by in _other_directions(node):
        yield CodeChange(Kind.SORT, False, other(_without(node), _without(by)), node, node, by)


def _other_directions(node: ast.Call) -> Iterator[ast.Call]:
    """Yields calls of `sort_values` with another direction, one key at a time."""
    given = next((word.value for word in node.keywords if word.arg == "ascending"), None)
    match given:
        case ast.List(elts=elements):
            for place, element in enumerate(elements):
                if isinstance(element, ast.Constant):
                    turned = [*elements[:place], ast.Constant(not element.value), *elements[place + 1 :]]
                    yield _with_keyword(node, "ascending", ast.List(turned, ast.Load()))
        case ast.Constant(value=bool() as ascending):
            yield _with_keyword(node, "ascending", ast.Constant(not ascending))
        case None:
            yield _with_keyword(node, "ascending", ast.Constant(False))


def _limited(node: ast.Call, name: str, inner: ast.expr) -> Iterator[CodeChange]:
    turned = copy.deepcopy(node)
    assert isinstance(turned.func, ast.Attribute)
    turned.func.attr = _LIMITS[name]
    yield CodeChange(Kind.LIMIT, False, f"`{name}` were `{_LIMITS[name]}`", node, node, turned)
    match node.args:
        case [ast.Constant(value=int() as count), *_]:
            for number in (count + 1, count - 1) if count > 1 else (count + 1,):
                by = _with_argument(node, ast.Constant(number))
                yield CodeChange(Kind.LIMIT, False, other(_without(node), _without(by)), node, node, by)
    if name in ("head", "tail") and not _is_group(inner):
        yield CodeChange(Kind.LIMIT, True, missing(_without(node)), node, node, inner)


def _is_group(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr == "groupby" for part in ast.walk(node))


def _grouped(node: ast.Call, known: Known) -> Iterator[CodeChange]:
    places = [("", argument) for argument in node.args[:1]] if _name(node) == "groupby" else []
    places += [(str(word.arg), word.value) for word in node.keywords if word.arg in ("by", "index", "columns")]
    for _, keys in places:
        match keys:
            case ast.List(elts=elements) if len(elements) > 1:
                for place, element in enumerate(elements):
                    kept = ast.List([*elements[:place], *elements[place + 1 :]], ast.Load())
                    yield CodeChange(Kind.GROUPING, True, f"the group key {missing(element)}", keys, element, kept)
            case ast.Constant(value=str() as column):
                another = known.another_column(column, frozenset({column}))
                if another is not None:
                    words = f"the group key `{column}` were `{another}`"
                    yield CodeChange(Kind.GROUPING, False, words, keys, keys, ast.Constant(another))


def _merged(node: ast.Call) -> Iterator[CodeChange]:
    how = next((word.value for word in node.keywords if word.arg == "how"), None)
    name = how.value if isinstance(how, ast.Constant) else "inner"
    for another in _JOINS.get(str(name), ()):
        by = _with_keyword(node, "how", ast.Constant(another))
        yield CodeChange(
            Kind.JOIN, False, f"the {name!s} join were a{'n' * (another[0] in 'io')} {another} join", node, node, by
        )


def _flags(node: ast.Call) -> Iterator[CodeChange]:
    """Yields calls without an option that changes the result."""
    for word in node.keywords:
        if word.arg in ("normalize", "right", "fill_value", "dropna") and isinstance(word.value, ast.Constant):
            by = copy.deepcopy(node)
            by.keywords = [one for one in by.keywords if one.arg != word.arg]
            yield CodeChange(
                Kind.DERIVED, True, f"`{word.arg}={word.value.value!r}` were missing", node, word.value, by
            )


def _name(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _without(node: ast.Call) -> ast.Call:
    """Returns the call as a function of its arguments alone, for readers."""
    return ast.Call(ast.Name(_name(node), ast.Load()), node.args, node.keywords)


def _with_argument(node: ast.Call, argument: ast.expr) -> ast.Call:
    by = copy.deepcopy(node)
    by.args[0] = argument
    return by


def _with_keyword(node: ast.Call, name: str, value: ast.expr) -> ast.Call:
    by = copy.deepcopy(node)
    by.keywords = [*(word for word in by.keywords if word.arg != name), ast.keyword(name, value)]
    return by

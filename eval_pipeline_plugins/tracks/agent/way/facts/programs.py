"""The facts of programs of Python; see `told`."""

import ast
from collections.abc import Callable, Iterator
from typing import Any

from eval_pipeline_plugins.tracks.agent.way.facts.names import (
    column_of,
    constants_of,
    is_constant,
    name_of,
    range_of,
)
from eval_pipeline_plugins.tracks.agent.way.facts.statements import of_statement
from eval_pipeline_plugins.tracks.agent.way.facts.told import AGGREGATES, DENIED, OPERATORS, TURNED, Told, plain

_SIGNS = {
    "Eq": "=",
    "NotEq": "<>",
    "IsNot": "<>",
    "Gt": ">",
    "GtE": ">=",
    "Lt": "<",
    "LtE": "<=",
    "In": "=",
    "NotIn": "<>",
    "Is": "=",
}
_SHORT = 40
_WIDE = frozenset({"zfill", "rjust", "ljust", "center"})
_PLACES = _WIDE | {"range", "enumerate"}
"""What is given widths and places, which are no figures."""
Counted = set[int]
"""Constants that a fact names already."""


def of_program(program: ast.Module) -> Told:
    """Yields the facts of a program."""
    counted: Counted = set()
    checks = {id(one) for node in ast.walk(program) if isinstance(node, ast.Assert) for one in ast.walk(node)}
    nodes = [one for one in ast.walk(program) if id(one) not in checks]
    denied = {id(one) for node in nodes for one in _denied_by(node)}
    choices = {id(one) for node in nodes if isinstance(node, ast.IfExp) for one in ast.walk(node.test)}
    for node in nodes:
        if isinstance(node, ast.Compare):
            told_of = _compared(node, counted, is_denied=id(node) in denied)
            yield from (("case" if id(node) in choices else kind, told) for kind, told in told_of)
        elif (tell := _BY_NODE.get(type(node))) is not None:
            yield from tell(node, counted)
    for node in nodes:
        if isinstance(node, ast.Constant) and id(node) not in counted:
            yield from _alone(node)


def _denied_by(node: ast.AST) -> Iterator[ast.expr]:
    """Yields what has to be false: after `not` and `~`, and what leads to `continue`."""
    match node:
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=inner) | ast.If(test=inner, body=[ast.Continue()]):
            yield from inner.values if isinstance(inner, ast.BoolOp) else [inner]


def _not(node: ast.UnaryOp, counted: Counted) -> Told:
    if isinstance(node.op, ast.Not | ast.Invert) and isinstance(node.operand, ast.Name | ast.Attribute | ast.Subscript):
        yield "where", f"not {name_of(node.operand)}"


def _part(node: ast.Subscript, counted: Counted) -> Told:
    match node:
        case ast.Subscript(slice=ast.Constant(value=str() as name)):
            yield "column", name.lower()
        case ast.Subscript(slice=ast.Constant(value=int()) as part):  # a place is no figure
            _count(counted, [part])
        case ast.Subscript(slice=ast.Slice() as part):  # a part of a text, or a few rows to look at
            _count(counted, [part])


def _looped(node: ast.comprehension | ast.For, counted: Counted) -> Told:
    if isinstance(node.iter, ast.Name):
        yield "over", node.iter.id.lower()


def _alone(node: ast.Constant) -> Told:
    if type(node.value) in (int, float):
        yield "number", plain(node.value)
    elif isinstance(node.value, str) and len(node.value) < _SHORT:
        yield "text", plain(node.value)


def _reckoned(node: ast.BinOp | ast.AugAssign, counted: Counted) -> Told:
    is_text = isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
    sign = None if is_text else OPERATORS.get(type(node.op).__name__.lower())
    if (added := _added_up(node)) is not None:
        is_one = isinstance(added, ast.Constant) and added.value == 1
        _count(counted, [added] if is_one else [])
        yield "aggregate", "count" if is_one else "sum"
        return
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd) and isinstance(node.right, ast.Name):
        yield "over", node.right.id.lower()
    for one in (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,):
        if isinstance(one, ast.Constant) and type(one.value) in (int, float):
            _count(counted, [one])
            yield "factor", plain(one.value)
    if sign is not None:
        yield "operator", sign
        if isinstance(node, ast.BinOp):
            yield "order", f"{name_of(node.left)} {sign} {name_of(node.right)}"


def _added_up(node: ast.BinOp | ast.AugAssign) -> ast.expr | None:
    """Returns what a loop adds to a total, as in `total += x` and `totals[key] = totals.get(key, 0) + x`.

    None for texts that grow and for counters of pages or of a loop, `i += 1` of a plain name.
    """
    match node:
        case ast.AugAssign(op=ast.Add(), target=ast.Name(), value=ast.Constant()):
            return None
        case ast.AugAssign(op=ast.Add(), value=added) if not any(map(_is_text, ast.walk(added))):
            return added
        case ast.BinOp(left=ast.Call(func=ast.Attribute(attr="get"), args=[_, ast.Constant(value=0)]), op=ast.Add()):
            return node.right
    return None


def _is_text(node: ast.AST) -> bool:
    """Returns whether a node makes a text or a list."""
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_text or isinstance(node, ast.List | ast.Tuple | ast.JoinedStr)


def _compared(node: ast.Compare, counted: Counted, *, is_denied: bool) -> Told:
    left: ast.expr = node.left
    for op, right in zip(node.ops, node.comparators, strict=True):
        sign = _SIGNS.get(type(op).__name__, type(op).__name__.lower())
        one, other = left, right
        if is_constant(one) and not is_constant(other):
            one, other, sign = other, one, TURNED.get(sign, sign)
        sign = DENIED.get(sign, sign) if is_denied else sign
        _count(counted, [other])
        if (bounds := range_of(other)) and sign == "=":
            yield from (("where", f"{column_of(one)} {told}") for told in bounds)
            left = right
            continue
        constants = list(constants_of(other))
        if constants:
            yield from (("where", f"{column_of(one)} {sign} {told}") for told in constants)
        else:
            yield "match", f" {sign} ".join(sorted((name_of(one), name_of(other))))
        left = right


def _count(counted: Counted, nodes: list[ast.expr]) -> None:
    counted |= {id(one) for node in nodes for one in ast.walk(node)}


def _called(node: ast.Call, counted: Counted) -> Told:
    is_method = isinstance(node.func, ast.Attribute)
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if (tell := _TELL.get(name)) is not None:
        yield from tell(node, counted)
    elif name == "sum" and _counts(node.args):
        yield "aggregate", "count"
    elif name in AGGREGATES:
        yield "aggregate", AGGREGATES[name]
    elif name in _PLACES:
        _count(counted, node.args)
        yield from (("width", told) for told in _given(node)[:1] if name in _WIDE)
    elif name == "round":
        places = node.args[-1:] if is_method else node.args[1:2]
        _count(counted, places)
        yield "round", next((told for one in places for told in constants_of(one)), "0")


def _counts(given: list[ast.expr]) -> bool:
    """Returns whether what is added up is yes or no, or 1."""
    match given:
        case [ast.GeneratorExp(elt=told) | ast.ListComp(elt=told)]:
            is_one = isinstance(told, ast.Constant) and told.value == 1
            return is_one or isinstance(told, ast.Compare | ast.BoolOp) or _is_denial(told)
    return False


def _is_denial(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


_BY_NODE: dict[type[ast.AST], Callable[[Any, Counted], Told]] = {
    ast.Call: _called,
    ast.BinOp: _reckoned,
    ast.AugAssign: _reckoned,
    ast.Subscript: _part,
    ast.UnaryOp: _not,
    ast.comprehension: _looped,
    ast.For: _looped,
}


def _over(node: ast.Call) -> str:
    """Returns what a method is called of."""
    return name_of(node.func.value if isinstance(node.func, ast.Attribute) else node.args[0] if node.args else None)


def _given(node: ast.Call) -> list[str]:
    return [told for one in node.args for told in constants_of(one)]


def _named(node: ast.Call, name: str) -> list[str]:
    return [told for one in node.keywords if one.arg == name for told in constants_of(one.value)]


def _chosen(sign: str, other: str = "") -> Callable[[ast.Call, Counted], Told]:
    def tell(node: ast.Call, counted: Counted) -> Told:
        _count(counted, node.args)
        for at, told in enumerate(_given(node)):
            yield "where", f"{_over(node)} {other if at and other else sign} {told}"

    return tell


def _queried(node: ast.Call, counted: Counted) -> Told:
    from eval_pipeline_plugins.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statements

    _count(counted, node.args)
    for text in _given(node)[:1]:
        try:
            (statement, *_) = parse_statements(f"SELECT 1 WHERE {text}".replace("==", "="), "duckdb", longest=2000)
        except SqlSyntaxError:
            return
        yield from (one for one in of_statement(statement) if one[0] == "where")


def _merged(node: ast.Call, counted: Counted) -> Told:
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Constant):
        return  # ", ".join(…)
    yield "join", next(iter(_named(node, "how")), "inner")
    on, *sides = (_named(node, name) for name in ("on", "left_on", "right_on"))
    pairs = [*zip(on, on, strict=True), *zip(*sides, strict=False)]
    yield from (("match", " = ".join(sorted((one.lower(), other.lower())))) for one, other in pairs)


def _grouped(node: ast.Call, counted: Counted) -> Told:
    yield from (("group", told.lower()) for told in [*_given(node), *_named(node, "by")])


def _cut(node: ast.Call, counted: Counted) -> Told:
    _count(counted, node.args)
    yield "limit", next(iter(_given(node)), "5")


def _sorted(node: ast.Call, counted: Counted) -> Told:
    yield "sort", "sort"


def _distinct(node: ast.Call, counted: Counted) -> Told:
    yield "distinct", "distinct"


def _there(node: ast.Call, counted: Counted) -> Told:
    yield "where", f"{_over(node)} <> null"


def _lacking(node: ast.Call, counted: Counted) -> Told:
    yield "where", f"{_over(node)} = null"


def _aggregated(node: ast.Call, counted: Counted) -> Told:
    told = [*_given(node), *(one for keyed in node.keywords for one in constants_of(keyed.value))]
    yield from (("aggregate", AGGREGATES[one]) for one in told if one in AGGREGATES)


_TELL: dict[str, Callable[[ast.Call, Counted], Told]] = {
    "isin": _chosen("="),
    "between": _chosen(">=", "<="),
    **dict.fromkeys(("startswith", "endswith", "contains", "match", "search", "fullmatch"), _chosen("like")),
    "query": _queried,
    **dict.fromkeys(("merge", "join"), _merged),
    "groupby": _grouped,
    **dict.fromkeys(("head", "nlargest", "nsmallest"), _cut),
    **dict.fromkeys(("sort_values", "sorted", "sort", "most_common"), _sorted),
    **dict.fromkeys(("drop_duplicates", "nunique", "unique", "set", "duplicated"), _distinct),
    **dict.fromkeys(("dropna", "notna", "notnull"), _there),
    **dict.fromkeys(("isna", "isnull"), _lacking),
    **dict.fromkeys(("agg", "aggregate"), _aggregated),
}
"""By the name of what is called."""

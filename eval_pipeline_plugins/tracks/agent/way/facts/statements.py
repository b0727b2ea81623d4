"""The facts of statements of SQL; see `told`."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from eval_pipeline_plugins.tracks.agent.way.facts.told import AGGREGATES, DENIED, OPERATORS, SHARE, TURNED, Told, plain

if TYPE_CHECKING:
    from sqlglot import exp

_SIGNS = {"eq": "=", "is": "=", "neq": "<>", "gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "like": "like"}
_SIGNS |= {"ilike": "like", "glob": "like", "nullsafeeq": "=", "regexplike": "like", "startswith": "like"}
_YES_AND_NO = frozenset({"0", "1", "0.0", "1.0", "100", "100.0"})
Counted = set[int]
"""Constants that a fact names already."""


def of_statement(statement: "exp.Expr") -> Told:
    """Yields the facts of a statement."""
    from sqlglot import exp

    from eval_pipeline_plugins.sql_equivalence.syntax.tables_in import base_tables

    for table in base_tables(statement):
        yield "from", table.name
    counted: Counted = set()
    made = {one.alias.lower() for one in statement.find_all(exp.Alias)}
    made -= {two.name.lower() for one in statement.find_all(exp.Alias) for two in one.this.find_all(exp.Column)}
    for node in statement.walk():
        if node.key == "column" and node.name.lower() in made:
            continue
        if node.key in _SIGNS and node.arg_key != "expressions":  # as what an UPDATE sets
            yield from _comparison(node, counted)
        elif (tell := _TELL.get(node.key)) is not None:
            yield from tell(node, counted)
        elif isinstance(node, exp.Avg) and _is_yes_or_no(node.this, counted):
            yield from SHARE
        elif isinstance(node, exp.AggFunc) and node.key in AGGREGATES:
            yield "pick" if _picks(node) else "aggregate", AGGREGATES[node.key]
        elif (sign := OPERATORS.get(node.key)) is not None:
            yield "operator", sign
            yield "order", f"{_column(node.this)} {sign} {_column(node.args['expression'])}"
    yield from _constants_of(statement, counted)


def _constants_of(statement: "exp.Expr", counted: Counted) -> Told:
    from sqlglot import exp

    for one in statement.find_all(exp.Literal):
        above = one.parent
        is_place = isinstance(above, exp.Group | exp.Ordered | exp.Substring | exp.RegexpExtract | exp.DataTypeParam)
        if id(one) not in counted and not is_place:
            is_factor = above is not None and above.key in OPERATORS
            yield "text" if one.is_string else "factor" if is_factor else "number", plain(one.this)


def _comparison(node: "exp.Expr", counted: Counted) -> Told:
    sign, left, right = _SIGNS[node.key], node.this, node.args.get("expression")
    if right is None:
        return
    if _is_constant(left) and not _is_constant(right):
        left, right, sign = right, left, TURNED.get(sign, sign)
    kind = "case" if _is_choice(node) else "where"
    sign = DENIED[sign] if _is_denied(node) else sign
    if _is_constant(right):
        counted |= {id(one) for one in (*right.walk(), *(told for told in left.walk() if not told.is_string))}
        yield kind, f"{_column(left)} {sign} {_constant(right)}"
    else:
        yield "match", f" {sign} ".join(sorted((_column(left), _column(right))))


def _is_yes_or_no(node: "exp.Expr", counted: Counted) -> bool:
    """Returns whether an expression is a condition as a number, by a cast or a choice of 1 and 0."""
    from sqlglot import exp

    inner = node.this.unnest() if isinstance(node, exp.Cast | exp.Paren) else node
    if isinstance(inner, exp.Case | exp.If):
        parts = [one.args["true"] for one in inner.args.get("ifs") or [inner]]
        parts += [one for one in (inner.args.get("default"), inner.args.get("false")) if one is not None]
        if not all(isinstance(one, exp.Literal) and one.name in _YES_AND_NO for one in parts):
            return False
        counted |= {id(one) for one in parts}
        return True
    return isinstance(inner, exp.Predicate)


def _picks(node: "exp.Expr") -> bool:
    """Returns whether the largest or smallest is to choose rows, and is no figure."""
    from sqlglot import exp

    above = node.parent
    return node.key in ("max", "min") and (
        isinstance(above, exp.Window) or node.find_ancestor(exp.Where, exp.Having, exp.Join) is not None
    )


def _is_denied(node: "exp.Expr") -> bool:
    above = node.parent
    while above is not None and above.key == "paren":
        above = above.parent
    return above is not None and above.key == "not"


def _is_choice(node: "exp.Expr") -> bool:
    """Returns whether a condition chooses a figure, and neither rows nor texts, by which rows are chosen later."""
    from sqlglot import exp

    above = node.find_ancestor(exp.If, exp.Where, exp.Join, exp.Having, exp.Select)
    if node.find_ancestor(exp.Update) is not None:  # which rows get what
        return False
    return isinstance(above, exp.If) and above.args["true"].find(exp.Substring, exp.DPipe, exp.StrToTime) is None


def _in(node: "exp.Expr", counted: Counted) -> Told:
    for one in node.expressions:
        counted.add(id(one))
        yield "where", f"{_column(node.this)} {'<>' if _is_denied(node) else '='} {_constant(one)}"


def _between(node: "exp.Expr", counted: Counted) -> Told:
    is_denied = _is_denied(node)
    for bound, sign in (("low", "<"), ("high", ">")) if is_denied else (("low", ">="), ("high", "<=")):
        counted |= {id(one) for one in node.args[bound].walk()}
        yield "where", f"{_column(node.this)} {sign} {_constant(node.args[bound])}"


def _not(node: "exp.Expr", counted: Counted) -> Told:
    inner = node.this.unnest()
    if inner.key == "column":
        yield "where", f"not {_column(inner)}"


def _by_case(node: "exp.Expr", counted: Counted) -> Told:
    for one in node.args["ifs"] if node.this is not None else ():
        counted |= {id(told) for told in one.this.walk()}
        yield "case", f"{_column(node.this)} = {_constant(one.this)}"


def _distinct(node: "exp.Expr", counted: Counted) -> Told:
    yield "distinct", "distinct"


def _group(node: "exp.Expr", counted: Counted) -> Told:
    from sqlglot import exp

    listed = node.parent.expressions if isinstance(node.parent, exp.Select) else []
    for one in node.expressions:
        if not isinstance(one, exp.Literal):
            yield "group", _column(one)
        elif one.this.isdigit() and 0 < int(one.this) <= len(listed):
            yield "group", _column(listed[int(one.this) - 1])


def _limit(node: "exp.Expr", counted: Counted) -> Told:
    counted.add(id(node.expression))
    yield "limit", _constant(node.expression)


def _filled(node: "exp.Expr", counted: Counted) -> Told:
    counted.add(id(node.args["expression"]))
    yield "width", _constant(node.args["expression"])


def _sorted(node: "exp.Expr", counted: Counted) -> Told:
    yield "sort", "sort"


def _join(node: "exp.Expr", counted: Counted) -> Told:
    yield "join", str(node.args.get("side") or node.args.get("kind") or "inner").lower()
    yield from (("match", f"{one.name.lower()} = {one.name.lower()}") for one in node.args.get("using") or ())


def _round(node: "exp.Expr", counted: Counted) -> Told:
    places = node.args.get("decimals")
    counted.add(id(places))
    yield "round", _constant(places) if places is not None else "0"


def _function(node: "exp.Expr", counted: Counted) -> Told:
    yield "text", node.key


def _select(node: "exp.Expr", counted: Counted) -> Told:
    yield "select", ", ".join(_column(one) for one in node.expressions)


def _of_column(node: "exp.Expr", counted: Counted) -> Told:
    yield "column", node.name.lower()


_TELL: dict[str, Callable[["exp.Expr", Counted], Told]] = {
    "in": _in,
    "case": _by_case,
    "between": _between,
    "not": _not,
    "distinct": _distinct,
    "group": _group,
    "limit": _limit,
    "pad": _filled,
    "order": _sorted,
    "join": _join,
    "round": _round,
    "column": _of_column,
    "select": _select,
    **dict.fromkeys(("substring", "regexpextract", "trim", "left", "right", "lower", "upper"), _function),
}
"""By kind of node."""


def _is_constant(node: "exp.Expr") -> bool:
    from sqlglot import exp

    inner = node.this if isinstance(node, exp.Cast | exp.Neg | exp.Paren) else node
    return isinstance(inner, exp.Literal | exp.Null | exp.Boolean)


def _constant(node: "exp.Expr") -> str:
    from sqlglot import exp

    match node:
        case exp.Neg():
            return plain(f"-{node.this.this}")
        case exp.Null():
            return "null"
        case exp.Cast() | exp.Paren():
            return _constant(node.this)
        case exp.Literal() | exp.Boolean():
            return plain(node.this)
    return _column(node)


def _column(node: "exp.Expr") -> str:
    """Returns the names of the columns that an expression is about, after what is aggregated."""
    from sqlglot import exp

    names = sorted({one.name.lower() for one in node.find_all(exp.Column)})
    made = [AGGREGATES[one.key] for one in node.find_all(exp.AggFunc) if one.key in AGGREGATES]
    return " ".join([*made, *names]) or node.sql().lower()

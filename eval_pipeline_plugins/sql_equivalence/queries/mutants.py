"""Makes mutants of a query, i.e. copies with one small mistake each, to test whether databases reveal mistakes."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlglot import exp

_MOST_OF_A_KIND = 6
_MOST = 40
_STRICTNESS: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.GT: exp.GTE,
    exp.GTE: exp.GT,
    exp.LT: exp.LTE,
    exp.LTE: exp.LT,
}
_OTHER_AGGREGATE: dict[type[exp.Expr], type[exp.AggFunc]] = {
    exp.Sum: exp.Avg,
    exp.Avg: exp.Sum,
    exp.Max: exp.Min,
    exp.Min: exp.Max,
}
_ARITHMETIC: dict[type[exp.Expr], type[exp.Binary]] = {exp.Add: exp.Sub, exp.Sub: exp.Add, exp.Mul: exp.Add}
_DROPPED = (
    *(exp.Round, exp.Trim, exp.Upper, exp.Lower, exp.Substring, exp.Abs, exp.Coalesce, exp.Floor, exp.Ceil, exp.Cast),
    *(exp.Length, exp.Date, exp.TimestampTrunc, exp.DateTrunc, exp.Nullif),
)
_FORMATS = {"%Y": "%m", "%m": "%d", "%d": "%m", "%w": "%d", "%H": "%M", "%Y-%m": "%Y", "%Y-%m-%d": "%Y-%m"}
_DISTANCE = re.compile(r"([+-]?)(\d{1,4}) +((?:year|month|day|hour|minute|second)s?)", re.IGNORECASE)
"""What SQLite's date functions add: '-3 months'."""
_PARTS = {"YEAR": "MONTH", "MONTH": "DAY", "DAY": "MONTH", "HOUR": "DAY", "WEEK": "MONTH", "QUARTER": "MONTH"}
_NO_VALUES = (exp.Limit, exp.Offset, exp.Ordered, exp.Group, exp.Select, exp.Interval)
_CONDITIONS = (exp.Where, exp.Having, exp.Qualify)

Change = Callable[[], None]


@dataclass(frozen=True, slots=True)
class QueryMutant:
    """A query with one mistake.

    Attributes:
        kind: kind of the mistake, in words.
        words: what was changed, for readers.
        tree: the query.
    """

    kind: str
    words: str
    tree: exp.Expr


def mutants(tree: exp.Expr) -> list[QueryMutant]:
    """Returns queries with one mistake each, all different from the original; the same ones in every process.

    Args:
        tree: the query; not changed.
    """
    found: list[QueryMutant] = []
    seen = {tree.sql(comments=False)}
    for kind, operator in OPERATORS.items():
        for number in range(min(sum(1 for _ in operator(tree)), _MOST_OF_A_KIND)):
            copy = tree.copy()
            words, change = list(operator(copy))[number]
            change()
            text = copy.sql(comments=False)
            if text not in seen:
                seen.add(text)
                found.append(QueryMutant(kind, words, copy))
    return found[:_MOST]


Places = Iterator[tuple[str, Change]]


def _dropped_conditions(tree: exp.Expr) -> Places:
    clauses: list[tuple[exp.Expr, str]] = [(clause, "this") for clause in tree.find_all(*_CONDITIONS)]
    clauses += [(join, "on") for join in tree.find_all(exp.Join) if isinstance(join.args.get("on"), exp.And)]
    for clause, key in clauses:
        condition = clause.args[key]
        parts = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
        for place, part in enumerate(parts):
            yield f"without {part.sql()}", partial(_keep, clause, key, [*parts[:place], *parts[place + 1 :]])


def _strictness(tree: exp.Expr) -> Places:
    for node in tree.find_all(*_STRICTNESS):
        yield f"the other strictness of {node.sql()}", partial(_retype, node, _STRICTNESS[type(node)])
    for between in tree.find_all(exp.Between):
        yield f"the low end left out of {between.sql()}", partial(_open_below, between)


def _limits(tree: exp.Expr) -> Places:
    for node in tree.find_all(exp.Limit, exp.Offset):
        name, value = "LIMIT" if isinstance(node, exp.Limit) else "OFFSET", node.expression
        if node is not tree:
            yield f"without {name}", partial(_pop, node)
        if isinstance(value, exp.Literal) and value.is_int:
            yield f"{name} {int(value.name) + 1}", partial(_set_number, value, int(value.name) + 1)


def _literals(tree: exp.Expr) -> Places:
    for node in tree.find_all(exp.Literal):
        if isinstance(node.parent, _NO_VALUES) or node.find_ancestor(exp.DataType) is not None:
            continue
        if node.is_int:
            yield f"{int(node.name) + 1} for {node.name}", partial(_set_number, node, int(node.name) + 1)
        elif node.is_number:
            yield f"another number for {node.name}", partial(_set_number, node, float(node.name) + 0.5)
        elif isinstance(node.parent, exp.EQ | exp.NEQ | exp.In):
            yield f"another text for '{node.name}'", partial(_set_text, node, f"{node.name}x")
        elif isinstance(node.parent, exp.Like) and "%" in node.name:
            yield f"LIKE '{node.name.strip('%')}'", partial(_set_text, node, node.name.strip("%"))


def _joins(tree: exp.Expr) -> Places:
    for join in tree.find_all(exp.Join):
        if join.args.get("on") is None and not join.args.get("using"):
            continue
        if join.side.upper() == "LEFT":
            yield f"an inner join of {join.this.sql()}", partial(_set, join, side=None)
        elif not join.side and join.kind.upper() in ("", "INNER"):
            yield f"a left join of {join.this.sql()}", partial(_set, join, side="LEFT", kind=None)


def _aggregates(tree: exp.Expr) -> Places:
    for node in tree.find_all(*_OTHER_AGGREGATE):
        other = _OTHER_AGGREGATE[type(node)]
        yield f"{other.key.upper()} for {node.sql()}", partial(_recall, node, other)
    for count in tree.find_all(exp.Count):
        inner = count.this
        if isinstance(inner, exp.Distinct) and inner.expressions:
            yield f"without DISTINCT in {count.sql()}", partial(_put_in_place, inner, inner.expressions[0])
        elif isinstance(inner, exp.Column):
            yield f"COUNT(*) for {count.sql()}", partial(_set, count, this=exp.Star())
            yield f"DISTINCT in {count.sql()}", partial(_set, count, this=exp.Distinct(expressions=[inner.copy()]))


def _distinct(tree: exp.Expr) -> Places:
    for select in tree.find_all(exp.Select):
        if select.args.get("distinct") is not None:
            yield "without DISTINCT", partial(_set, select, distinct=None)
        elif select is tree and select.args.get("group") is None and not select.find(exp.AggFunc):
            yield "with DISTINCT", partial(_set, select, distinct=exp.Distinct())
    for union in tree.find_all(exp.Union):
        yield "UNION and UNION ALL confused", partial(_set, union, distinct=not union.args.get("distinct"))


def _order(tree: exp.Expr) -> Places:
    for ordered in tree.find_all(exp.Ordered):
        yield f"the other direction of {ordered.sql()}", partial(_set, ordered, desc=not ordered.args.get("desc"))


def _functions(tree: exp.Expr) -> Places:
    for node in tree.find_all(*_DROPPED):
        if isinstance(node.this, exp.Expr):
            yield f"{node.this.sql()} for {node.sql()}", partial(_unwrap, node)
        if isinstance(node, exp.Cast) and node.to.is_type(*exp.DataType.INTEGER_TYPES):
            yield f"FLOOR for {node.sql()}", partial(_recall, node, exp.Floor)


def _dates(tree: exp.Expr) -> Places:
    for literal in tree.find_all(exp.Literal):
        if literal.is_string and (form := _FORMATS.get(literal.name)):
            yield f"'{form}' for '{literal.name}'", partial(_set_text, literal, form)
        elif literal.is_string and (distance := _DISTANCE.fullmatch(literal.name.strip())):
            sign, number, unit = distance.groups()
            other = f"{sign}{int(number) + 1} {unit}"
            yield f"'{other}' for '{literal.name}'", partial(_set_text, literal, other)
    for var in tree.find_all(exp.Var):
        if unit := _PARTS.get(var.name.upper()):
            yield f"{unit} for {var.name}", partial(_set, var, this=unit)
    for interval in tree.find_all(exp.Interval):
        if isinstance(interval.this, exp.Literal) and interval.this.name.isdigit():
            more = str(int(interval.this.name) + 1)
            yield f"an interval of {more}", partial(_set, interval, this=exp.Literal.string(more))


def _operators(tree: exp.Expr) -> Places:
    for node in tree.find_all(exp.Or):
        if not isinstance(node.parent, exp.Or):
            yield "AND for OR", partial(_retype, node, exp.And)
    for term in tree.find_all(*_ARITHMETIC):
        yield f"another operation in {term.sql()}", partial(_retype, term, _ARITHMETIC[type(term)])


BY_CONSTRAINTS = frozenset(("another join", "duplicates"))
"""Kinds of mistakes that constraints of the schema often make none: foreign keys lead somewhere, keys are unique."""
OPERATORS: dict[str, Callable[[exp.Expr], Places]] = {
    "a condition dropped": _dropped_conditions,
    "a bound in or out": _strictness,
    "another limit": _limits,
    "another literal": _literals,
    "another join": _joins,
    "another aggregate": _aggregates,
    "duplicates": _distinct,
    "another order": _order,
    "a function dropped": _functions,
    "another part of a date": _dates,
    "another operator": _operators,
}


def _keep(clause: exp.Expr, key: str, kept: list[exp.Expr]) -> None:
    if kept:
        clause.set(key, exp.and_(*(part.copy() for part in kept), copy=False))
    else:
        clause.pop()


def _retype(node: exp.Expr, other: type[exp.Expr]) -> None:
    node.replace(other(this=node.this, expression=node.expression))


def _recall(call: exp.Expr, other: type[exp.Expr]) -> None:
    call.replace(other(this=call.this))


def _unwrap(call: exp.Expr) -> None:
    call.replace(exp.paren(call.this.copy()))


def _put_in_place(node: exp.Expr, other: exp.Expr) -> None:
    node.replace(other)


def _open_below(between: exp.Expr) -> None:
    low = exp.GT(this=between.this.copy(), expression=between.args["low"].copy())
    high = exp.LTE(this=between.this.copy(), expression=between.args["high"].copy())
    between.replace(exp.paren(exp.and_(low, high)))


def _set(node: exp.Expr, **arguments: Any) -> None:
    for name, value in arguments.items():
        node.set(name, value)


def _pop(node: exp.Expr) -> None:
    node.pop()


def _set_number(literal: exp.Expr, value: float) -> None:
    literal.replace(exp.Literal.number(value))


def _set_text(literal: exp.Expr, text: str) -> None:
    literal.replace(exp.Literal.string(text))

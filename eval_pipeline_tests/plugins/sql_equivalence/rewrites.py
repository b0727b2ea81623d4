"""Rewrites that are sound whatever the data, NULLs and duplicates included; each by one rule at one place."""

from collections.abc import Callable, Iterator

import sqlglot
from sqlglot import exp

DIALECT = "sqlite"
_FLIPPED = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE, exp.EQ: exp.EQ, exp.NEQ: exp.NEQ}
Change = Callable[[], None]


def rewritten(sql: str) -> Iterator[tuple[str, str]]:
    """Yields the name of a rule and what it makes of the query, for each place where one fits."""
    for name, rule in RULES.items():
        for number in range(len(list(rule(_parsed(sql))))):
            tree = _parsed(sql)
            list(rule(tree))[number]()
            made = tree.sql(dialect=DIALECT)
            if made != _parsed(sql).sql(dialect=DIALECT):
                yield name, made
    tree = _parsed(sql)
    if tree.args.get("order") is None and _named_apart(tree):
        yield "a derived table", f"SELECT * FROM ({sql}) AS wrapped"
        if tree.args.get("with_") is None:
            yield "a CTE", f"WITH wrapped AS ({sql}) SELECT * FROM wrapped"


def _parsed(sql: str) -> exp.Expr:
    return sqlglot.parse_one(sql, dialect=DIALECT)


def _named_apart(tree: exp.Expr) -> bool:
    names = [select.alias_or_name for select in tree.selects]
    return len(set(names)) == len(names)


def _between(tree: exp.Expr) -> Iterator[Change]:
    for node in tree.find_all(exp.Between):
        low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
        high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
        yield lambda node=node, low=low, high=high: node.replace(exp.paren(exp.and_(low, high)))


def _in_list(tree: exp.Expr) -> Iterator[Change]:
    for node in tree.find_all(exp.In):
        if node.expressions and not isinstance(node.this, exp.Tuple):
            equal = [exp.EQ(this=node.this.copy(), expression=one.copy()) for one in node.expressions]
            yield lambda node=node, equal=equal: node.replace(exp.paren(exp.or_(*equal)))


def _flipped(tree: exp.Expr) -> Iterator[Change]:
    """Only columns and plain numbers or texts: SQLite's affinities look at the sides."""
    for node in tree.find_all(*_FLIPPED):
        if all(isinstance(side, exp.Column | exp.Literal) for side in (node.left, node.right)):
            other = _FLIPPED[type(node)](this=node.right.copy(), expression=node.left.copy())
            yield lambda node=node, other=other: node.replace(other)


def _negated_twice(tree: exp.Expr) -> Iterator[Change]:
    for where in tree.find_all(exp.Where, exp.Having):
        inner = where.this.copy()
        yield lambda where=where, inner=inner: where.set("this", exp.not_(exp.paren(exp.not_(exp.paren(inner)))))


def _other_order_of_conditions(tree: exp.Expr) -> Iterator[Change]:
    for where in tree.find_all(exp.Where, exp.Having):
        if isinstance(where.this, exp.And | exp.Or):
            join = exp.and_ if isinstance(where.this, exp.And) else exp.or_
            parts = [part.copy() for part in where.this.flatten()][::-1]
            yield lambda where=where, join=join, parts=parts: where.set("this", join(*parts))


def _not_equal(tree: exp.Expr) -> Iterator[Change]:
    for node in tree.find_all(exp.NEQ):
        other = exp.not_(exp.EQ(this=node.this.copy(), expression=node.expression.copy()))
        yield lambda node=node, other=other: node.replace(exp.paren(other))


def _count_one(tree: exp.Expr) -> Iterator[Change]:
    for node in tree.find_all(exp.Count):
        if isinstance(node.this, exp.Star):
            yield lambda node=node: node.set("this", exp.Literal.number(1))


def _distinct_as_groups(tree: exp.Expr) -> Iterator[Change]:
    for select in tree.find_all(exp.Select):
        plain = all(isinstance(one, exp.Column) and not one.is_star for one in select.expressions)
        others = any(select.args.get(name) for name in ("group", "having", "order", "limit", "offset"))
        if select.args.get("distinct") is not None and plain and not others:
            keys = [one.copy() for one in select.expressions]

            def change(select: exp.Expr = select, keys: list[exp.Expr] = keys) -> None:
                select.set("distinct", None)
                select.set("group", exp.Group(expressions=keys))

            yield change


def _groups_as_distinct(tree: exp.Expr) -> Iterator[Change]:
    for select in tree.find_all(exp.Select):
        group = select.args.get("group")
        others = any(select.args.get(name) for name in ("having", "order", "limit", "distinct"))
        if (
            group is not None
            and not others
            and {one.sql() for one in group.expressions} == {one.sql() for one in select.expressions}
        ):

            def change(select: exp.Expr = select) -> None:
                select.set("group", None)
                select.set("distinct", exp.Distinct())

            yield change


def _join_in_where(tree: exp.Expr) -> Iterator[Change]:
    """The condition of an inner join, where no outer join is beside it."""
    for select in tree.find_all(exp.Select):
        joins = select.args.get("joins") or []
        if any(join.side or join.method for join in joins):
            continue
        for join in joins:
            if join.args.get("on") is not None:

                def change(select: exp.Select = select, join: exp.Expr = join) -> None:
                    condition = join.args["on"].copy()
                    join.set("on", None)
                    join.set("kind", "CROSS")
                    select.where(condition, copy=False)

                yield change


def _union_turned(tree: exp.Expr) -> Iterator[Change]:
    for node in tree.find_all(exp.Union, exp.Intersect):
        one, other = node.this, node.expression
        same = [select.alias_or_name for select in one.selects] == [select.alias_or_name for select in other.selects]
        if same and not any(node.args.get(name) for name in ("order", "limit")) and isinstance(one, exp.Select):

            def change(node: exp.Expr = node) -> None:
                first, second = node.this.copy(), node.expression.copy()
                node.set("this", second)
                node.set("expression", first)

            yield change


def _offset_nothing(tree: exp.Expr) -> Iterator[Change]:
    for query in tree.find_all(exp.Select):
        if query.args.get("limit") is not None and query.args.get("offset") is None:
            yield lambda query=query: query.set("offset", exp.Offset(expression=exp.Literal.number(0)))


def _nothing_added(tree: exp.Expr) -> Iterator[Change]:
    for select in tree.find_all(exp.Select):
        if select.args.get("where") is not None:
            yield lambda select=select: select.where("1 = 1", copy=False)


RULES: dict[str, Callable[[exp.Expr], Iterator[Change]]] = {
    "BETWEEN as two bounds": _between,
    "IN as equalities": _in_list,
    "sides of a comparison": _flipped,
    "NOT NOT": _negated_twice,
    "order of conditions": _other_order_of_conditions,
    "<> as NOT =": _not_equal,
    "COUNT(1)": _count_one,
    "DISTINCT as GROUP BY": _distinct_as_groups,
    "GROUP BY as DISTINCT": _groups_as_distinct,
    "ON in WHERE": _join_in_where,
    "sides of a set operation": _union_turned,
    "OFFSET 0": _offset_nothing,
    "AND 1 = 1": _nothing_added,
}

"""Recognises queries whose result cannot depend on the rows of any table.

They read no table, or a condition that no row satisfies (`x = 7 AND x = 8`, `FALSE`, `NULL = 1`) leaves them without
rows. If two such queries have the same result once, they always have.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.simplify import simplify

from eval_pipeline_plugins.sql_equivalence.syntax.tables_in import base_tables

_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_EXCLUDING = (
    (exp.EQ, exp.NEQ),
    (exp.EQ, exp.GT),
    (exp.EQ, exp.LT),
    (exp.GT, exp.LTE),
    (exp.GT, exp.LT),
    (exp.GTE, exp.LT),
)
"""Comparisons with one value that no value satisfies together."""
_TIMES = (exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.CurrentDatetime)
_TIME_NAMES = ("now", "today", "localtime", "localtimestamp", "get_current_time", "get_current_timestamp")
_LARGEST = 10**6
"""Literals below it are different in every type of numbers."""


def is_fixed(tree: exp.Expr, unsure: Collection[str] = ()) -> bool:
    """Returns whether a deterministic query has the same result on every database.

    Args:
        tree: the query; not changed.
        unsure: names of columns, in lower case, in whose type different whole numbers may be equal.
    """
    try:
        return not _asks_the_time(tree) and not _calls_the_unknown(tree) and _is_fixed(tree, unsure)
    except (SqlglotError, RecursionError, ValueError, AttributeError, TypeError):  # trees that simplify is not made for
        return False


def _asks_the_time(tree: exp.Expr) -> bool:
    """Returns whether the result may be another one tomorrow."""
    names = (node.name for node in tree.find_all(exp.Literal, exp.Anonymous))
    return tree.find(*_TIMES) is not None or any(name.lower() in _TIME_NAMES for name in names)


def _calls_the_unknown(tree: exp.Expr) -> bool:
    """Returns whether it calls what may be a macro of the database, which may read rows."""
    return tree.find(exp.Anonymous, exp.AnonymousAggFunc) is not None


def _is_fixed(tree: exp.Expr, unsure: Collection[str]) -> bool:
    if not base_tables(tree):
        return True
    if tree.find(exp.CTE) is not None:
        return False
    tree = tree.unnest()
    if isinstance(tree, exp.SetOperation):
        return _is_empty(tree, unsure) or (_is_fixed(tree.this, unsure) and _is_fixed(tree.expression, unsure))
    if not isinstance(tree, exp.Select):
        return False
    if _is_empty(tree, unsure):
        return True
    reads = [*tree.expressions, *(tree.args.get(name) for name in ("having", "qualify", "order", "limit", "offset"))]
    return _has_no_rows(tree, unsure) and not any(part is not None and part.find(exp.Query) for part in reads)


def _is_empty(tree: exp.Expr, unsure: Collection[str]) -> bool:
    """Returns whether a query is known to return no rows."""
    tree = tree.unnest()
    if isinstance(tree, exp.SetOperation):
        left, right = _is_empty(tree.this, unsure), _is_empty(tree.expression, unsure)
        if isinstance(tree, exp.Except):
            return left
        return (left or right) if isinstance(tree, exp.Intersect) else (left and right)
    if not isinstance(tree, exp.Select) or tree.args.get("with_") is not None:
        return False
    return not _aggregates_all(tree) and _has_no_rows(tree, unsure)


def _aggregates_all(select: exp.Select) -> bool:
    """Returns whether there is one row even for no rows: aggregates without GROUP BY, or grouping sets."""
    group = select.args.get("group")
    if group is not None:
        sets = group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None
        return (
            sets or not group.expressions or any(value for name, value in group.args.items() if name != "expressions")
        )
    return select.args.get("having") is not None or any(part.find(exp.AggFunc) for part in select.expressions)


def _has_no_rows(select: exp.Select, unsure: Collection[str]) -> bool:
    """Returns whether FROM and WHERE are known to leave no rows."""
    start = select.args.get("from_")
    empty = start is not None and _is_empty_source(start.this, unsure)
    joins, where = select.args.get("joins") or [], select.args.get("where")
    inner = all(not join.side and join.kind not in ("SEMI", "ANTI") for join in joins)
    for join in joins:
        other = _is_empty_source(join.this, unsure)
        side = str(join.side).upper()
        if side == "RIGHT":
            empty = other
        elif side == "FULL":
            empty = empty and other
        elif side != "LEFT" and join.kind != "ANTI":
            empty = empty or other
    conditions = [join.args["on"] for join in joins if inner and join.args.get("on") is not None]
    conditions += [where.this] if where is not None else []
    return empty or (bool(conditions) and _is_never_true(exp.and_(*conditions), unsure))


def _is_empty_source(source: exp.Expr, unsure: Collection[str]) -> bool:
    return isinstance(source, exp.Subquery) and not source.args.get("joins") and _is_empty(source.this, unsure)


@dataclass
class _Facts:
    """What the parts of a conjunction say of a column."""

    null: bool = False
    compared: bool = False
    values: dict[int, set[type[exp.Expr]]] = field(default_factory=dict)

    def contradict(self) -> bool:
        equal = [value for value, kinds in self.values.items() if exp.EQ in kinds]
        excluding = any({one, other} <= kinds for kinds in self.values.values() for one, other in _EXCLUDING)
        return (self.null and self.compared) or len(equal) > 1 or excluding


def _is_never_true(condition: exp.Expr, unsure: Collection[str]) -> bool:
    """Returns whether a condition is known to be false or NULL whatever the row."""
    facts: dict[str, _Facts] = {}
    for part in _parts(simplify(condition.copy())):
        if isinstance(part, exp.Null) or (isinstance(part, exp.Boolean) and not part.this):
            return True
        if isinstance(part, exp.Is) and isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Null):
            facts.setdefault(_name(part.this), _Facts()).null = True
        elif isinstance(part, _COMPARED):
            if isinstance(part.left, exp.Null) or isinstance(part.right, exp.Null):
                return True
            _note(facts, part, unsure)
    return any(found.contradict() for found in facts.values())


def _parts(condition: exp.Expr) -> Iterator[exp.Expr]:
    condition = condition.unnest()
    yield from (part.unnest() for part in condition.flatten()) if isinstance(condition, exp.And) else (condition,)


def _note(facts: dict[str, _Facts], part: Any, unsure: Collection[str]) -> None:
    for side in (part.left, part.right):
        if isinstance(side, exp.Column):
            facts.setdefault(_name(side), _Facts()).compared = True
    column, value = part.left, part.right
    whole = isinstance(value, exp.Literal) and value.is_int and abs(int(value.name)) < _LARGEST
    if whole and isinstance(column, exp.Column) and column.name.lower() not in unsure:
        facts[_name(column)].values.setdefault(int(value.name), set()).add(type(part))


def _name(column: exp.Column) -> str:
    return f"{column.table}.{column.name}".lower()

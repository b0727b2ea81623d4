"""Computes the parts of a query that read no column but are no literals: `3 * 50`, `date('2024-03-31', '-1 month')`.

Columns are compared with them as with literals, so databases need rows on both sides of their values.
"""

from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline_plugins.sql_equivalence.generated.memory import computing

_MOST = 30
_LONGEST = 200
_COMPUTED = (exp.Func, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.DPipe, exp.Neg, exp.Paren)
_NEVER = (exp.Column, exp.Star, exp.Query, exp.Window, exp.AggFunc, exp.Predicate, exp.Connector, exp.Parameter)

Constants = Callable[[exp.Expr], dict[int, Any]]
"""Returns the values of a tree's computed constants, by the `id` of their nodes."""


def no_constants(_: exp.Expr) -> dict[int, Any]:
    """Computes nothing."""
    return {}


def constants_in(engine: str) -> Constants:
    """Returns a function that lets `sqlite` or `duckdb` compute the constants of a tree.

    Values are an int, a float or a text, as of a literal; days and times are texts in ISO format. Constants that the
    engine does not understand, or whose value is of another kind, are left out.
    """
    query = computing(engine)

    def values(tree: exp.Expr) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for number, node in enumerate(_computed(tree)):
            if number == _MOST:
                break
            try:
                rows = query(f"SELECT {node.sql(dialect=engine, comments=False)}").rows
            except SqlError as error:
                if error.error_class is ErrorClass.TIMEOUT:
                    break
                continue
            except (SqlglotError, RecursionError):
                continue
            value = _as_literal(rows[0][0]) if rows else None
            if value is not None:
                found[id(node)] = value
        return found

    return values


def _computed(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yields the largest expressions that are computed without reading a row, parents of a tree first."""
    nodes = list(tree.walk())  # parents come before what they contain
    constant: dict[int, bool] = {}
    for node in reversed(nodes):
        constant[id(node)] = not isinstance(node, _NEVER) and all(
            constant[id(part)] for part in node.iter_expressions()
        )
    within: set[int] = set()
    for node in nodes:
        if id(node.parent) in within:
            within.add(id(node))
        elif isinstance(node, _COMPUTED) and constant[id(node)]:
            within.add(id(node))
            if not _is_literal(node):
                yield node


def _is_literal(node: exp.Expr) -> bool:
    """Returns whether a node is a literal with a sign, brackets or a type."""
    while isinstance(node, exp.Neg | exp.Paren | exp.Cast):
        node = node.this
    return isinstance(node, exp.Literal | exp.Null | exp.Boolean)


def _as_literal(value: Any) -> int | float | str | None:
    match value:
        case bool() | None:
            return None
        case int() | float():
            return value
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case datetime():
            return value.replace(tzinfo=None).isoformat(sep=" ")
        case date():
            return value.isoformat()
        case str() if len(value) <= _LONGEST:
            return value
        case _:
            return None

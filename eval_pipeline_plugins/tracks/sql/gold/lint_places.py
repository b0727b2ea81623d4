"""Places of a query at which its lint looks: what sorts, what is compared, what an aggregate takes."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import pairwise

from sqlglot import exp

from eval_pipeline_plugins.tracks.sql.cases.source import Database

_COMPARED = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
_DATES = (
    (re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})"), (1, 2, 3)),
    (re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})"), (3, 1, 2)),
    (re.compile(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})"), (3, 2, 1)),
)
"""Forms of dates as text, with the groups of year, month and day."""


def decides(key: exp.Ordered) -> bool:
    """Whether an order decides which rows there are: that of a LIMIT or of a window."""
    order = key.find_ancestor(exp.Order)
    owner = order.parent if order is not None else None
    return isinstance(owner, exp.Window) or (isinstance(owner, exp.Query) and owner.args.get("limit") is not None)


def numbered_otherwise(tree: exp.Expr, row: str) -> list[exp.Expr]:
    """Returns a query with the ties of each ROW_NUMBER that picks rows broken in two ways, and with RANK in its place.

    Args:
        tree: the query.
        row: the name of the column by which an engine tells rows of a table apart.
    """
    found = []
    for descending in (False, True, None):
        copy, changed = tree.copy(), False
        for call in list(copy.find_all(exp.RowNumber)):
            window, select = call.parent, call.find_ancestor(exp.Select)
            order = window.args.get("order") if isinstance(window, exp.Window) else None
            if order is None or select is None or (select is copy and not select.args.get("qualify")):
                continue
            changed = True
            if descending is None:
                call.replace(exp.Anonymous(this="RANK"))
                continue
            ties = (exp.Ordered(this=exp.column(row, table=one), desc=descending) for one in _sources(select))
            order.set("expressions", [*order.expressions, *ties])
        found += [copy] if changed else []
    return found


def sorted_columns(tree: exp.Expr) -> Iterator[tuple[exp.Column, exp.Expr]]:
    """Yields the bare columns by which a query sorts, compares with < or >, or takes an extreme, with that node."""
    kinds: tuple[type[exp.Expr], ...] = (exp.Ordered, exp.Min, exp.Max, *_COMPARED)
    for node in list(tree.find_all(*kinds)):
        sides = (node.this, node.args.get("expression")) if isinstance(node, exp.Binary) else (node.this,)
        for side in sides:
            if isinstance(side, exp.Column) and not side.is_star:
                yield side, node


def texts_beside(column: exp.Column, node: exp.Expr) -> list[exp.Expr]:
    """Returns the literals that a column is compared with, if they are texts."""
    beside = node.args.values() if isinstance(node, _COMPARED) else ()
    return [part for part in beside if isinstance(part, exp.Literal) and part.is_string]


def table_of(column: exp.Column, database: Database) -> str | None:
    """Returns the base table that a column belongs to; None if that is not known."""
    select = column.find_ancestor(exp.Select)
    while select is not None:
        sources = _sources(select)
        if column.table:
            if column.table.lower() in sources:
                return sources[column.table.lower()]
        else:
            having = [
                table
                for table in sources.values()
                if (found := database.schema.table(table)) is not None and found.column(column.name) is not None
            ]
            if having:
                return having[0] if len(having) == 1 else None
        select = select.find_ancestor(exp.Select)
    return None


def _sources(select: exp.Expr) -> dict[str, str]:
    """Returns alias → table for the tables that a SELECT reads directly."""
    start = select.args.get("from_")
    parts = [start.this if start is not None else None, *(join.this for join in select.args.get("joins") or [])]
    return {part.alias_or_name.lower(): part.name for part in parts if isinstance(part, exp.Table) and part.name}


def only_source(call: exp.Expr, select: exp.Select, database: Database) -> str | None:
    """Returns the alias of the one base table whose columns an aggregate takes; None if there is no such table."""
    columns, sources = list(call.find_all(exp.Column)), _sources(select)
    if not columns or isinstance(call.this, exp.Distinct) or call.find(exp.Query) or _counts(call.this):
        return None
    tables = {table_of(column, database) for column in columns}
    aliases = [alias for alias, table in sources.items() if tables == {table}]
    known = len(aliases) == 1 and database.schema.table(sources[aliases[0]]) is not None
    return aliases[0] if known else None


def _counts(summed: exp.Expr) -> bool:
    """Whether a sum counts rows, as `SUM(CASE WHEN … THEN 1 ELSE 0 END)` does: that of a join's rows may be meant."""
    given = [*summed.find_all(exp.If)] if isinstance(summed, exp.Case | exp.If) else []
    values = [part for one in given for part in (one.args.get("true"), one.args.get("false"))]
    values += [summed.args.get("default")] if isinstance(summed, exp.Case) else []
    return bool(given) and all(value is None or isinstance(value, exp.Literal | exp.Null) for value in values)


def key_of_group(key: exp.Expr, select: exp.Select) -> exp.Expr:
    """Returns a key of GROUP BY with a position or an alias written out."""
    if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(select.expressions):
        place = int(key.name) - 1
        found: exp.Expr = select.expressions[place].unalias()
        return found
    if isinstance(key, exp.Column) and not key.table:
        made: dict[str, exp.Expr] = {
            one.alias.lower(): one.unalias() for one in select.expressions if isinstance(one, exp.Alias)
        }
        return made.get(key.name.lower(), key)
    return key


def rounds_down(division: exp.Div) -> bool:
    """Whether a division is one step of rounding, as in `year / 10 * 10`."""
    above = division.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    return isinstance(above, exp.Mul) and division.expression in (above.this, above.expression)


def wrongly_ordered_dates(texts: Iterable[str]) -> tuple[str, str] | None:
    """Returns two texts in their order whose dates are in the other order, if all texts are dates of one form."""
    found = sorted(texts)
    for form, groups in _DATES:
        matches = [form.fullmatch(text.strip().partition(" ")[0]) for text in found]
        dates = [day for match in matches if match is not None and (day := _date(match, groups)) is not None]
        if len(found) > 1 and len(dates) == len(found):
            neighbours = pairwise(zip(found, dates, strict=True))
            return next(((one, other) for (one, day), (other, then) in neighbours if then < day), None)
    return None


def _date(match: re.Match[str], groups: Sequence[int]) -> date | None:
    try:
        return date(*(int(match[group]) for group in groups))
    except ValueError:
        return None

"""Canonical forms of queries: two queries with the same form give the same result on every database.

The rules are sqlglot's: qualify, normalize, canonicalize, simplify, and merging of subqueries. Subqueries are merged
only if every derived table on the nullable side of an outer join selects plain columns, because otherwise a constant
that should become NULL would stay a constant. Names that do not affect the result are then replaced by their
position.
"""

from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.canonicalize import canonicalize
from sqlglot.optimizer.merge_subqueries import merge_subqueries
from sqlglot.optimizer.normalize import normalize
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.optimizer.simplify import simplify
from sqlglot.schema import MappingSchema

from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema

_UNFIT = (SqlglotError, RecursionError, ValueError, KeyError, AttributeError, TypeError)
"""What sqlglot's optimizer raises on trees that it was not made for."""
_WIDEST = 24  # clauses: a conjunctive form beyond it takes longer than running the query


@lru_cache(maxsize=64)
def _tables(schema: SqlSchema, dialect: str) -> MappingSchema:
    return MappingSchema(dict(schema.as_mapping()), dialect=dialect)


def qualified(tree: exp.Expr, schema: SqlSchema, dialect: str) -> exp.Expr | None:
    """Returns the query with every column qualified and stars expanded; None if it does not fit the schema."""
    try:
        return qualify(tree.copy(), schema=_tables(schema, dialect), dialect=dialect, quote_identifiers=False)
    except _UNFIT:
        return None


def typed(tree: exp.Expr, schema: SqlSchema, dialect: str) -> exp.Expr:
    """Returns the query with the types that a translation needs (e.g. for division); unchanged if they are unknown."""
    try:
        return annotate_types(tree.copy(), schema=_tables(schema, dialect), dialect=dialect)
    except _UNFIT:
        return tree


def canonical(tree: exp.Expr, schema: SqlSchema, dialect: str, *, ordered: bool = True) -> str | None:
    """Returns the canonical form of a qualified query; None if the rules cannot be applied.

    Args:
        tree: result of `qualified`; not changed.
        schema: its tables.
        dialect: sqlglot's name.
        ordered: whether the order of the outermost ORDER BY matters.
    """
    try:
        copy = tree.copy()
        if _names_clash(copy, schema):
            return None
        if not ordered and not copy.args.get("limit") and not copy.args.get("offset"):
            copy.set("order", None)
        _write_out_negations(copy)
        if _merging_is_sound(copy):
            copy = merge_subqueries(copy, leave_tables_isolated=False)
        copy = annotate_types(copy, schema=_tables(schema, dialect), dialect=dialect)
        copy = simplify(canonicalize(normalize(copy, max_distance=_WIDEST), dialect=dialect), dialect=dialect)
        _rename(copy)
        return str(copy.sql(dialect=dialect, comments=False, copy=False))
    except _UNFIT:
        return None


def _write_out_negations(tree: exp.Expr) -> None:
    """Replaces the single node `x NOT LIKE y` by `NOT x LIKE y`, which the rules know, in the tree itself."""
    for node in [found for found in tree.walk() if found.args.get("negate")]:
        node.set("negate", None)
        node.replace(exp.Not(this=exp.paren(node.copy())))


def _names_clash(tree: exp.Expr, schema: SqlSchema) -> bool:
    """Returns whether a CTE has the name of another CTE or of a table, which `_rename` could not tell apart."""
    names = [common.alias.lower() for common in tree.find_all(exp.CTE)]
    return len(set(names)) < len(names) or any(schema.relation(name) is not None for name in names)


def _merging_is_sound(tree: exp.Expr) -> bool:
    """Returns whether every derived table on the nullable side of an outer join selects only plain columns."""
    for select in tree.find_all(exp.Select):
        joins = select.args.get("joins") or []
        sides = {str(join.side).upper() for join in joins}
        if not sides & {"LEFT", "RIGHT", "FULL"}:
            continue
        commons = {common.alias: common.this for common in tree.find_all(exp.CTE)}
        start = select.args.get("from_") or select.args.get("from")
        for source in [start, *joins]:
            inner = source.this if source is not None else None
            if isinstance(inner, exp.Table):
                inner = commons.get(inner.name)
            elif isinstance(inner, exp.Subquery):
                inner = inner.unnest()
            if isinstance(inner, exp.Query) and not all(
                isinstance(part.unalias(), exp.Column) for part in inner.selects
            ):
                return False
    return True


def _rename(tree: exp.Expr) -> None:
    """Replaces names of tables in FROM, of CTEs and of intermediate columns by their position, in the tree itself."""
    scopes = list(traverse_scope(tree))
    renamed: dict[int, dict[str, str]] = {}
    for scope in scopes:  # inner ones first
        renamed[id(scope)] = _rename_columns(scope, renamed)
    number = 0
    for scope in scopes:
        names: dict[str, str] = {}
        for alias in list(scope.selected_sources):
            names[alias] = f"_t{number}"
            number += 1
        _rename_sources(scope, names)
    for place, common in enumerate(list(tree.find_all(exp.CTE))):
        old, new = common.alias, f"_cte{place}"
        for table in tree.find_all(exp.Table):
            if table.name == old and not table.db:
                table.set("this", exp.to_identifier(new))
        common.set("alias", exp.TableAlias(this=exp.to_identifier(new)))


def _rename_columns(scope: Scope, renamed: dict[int, dict[str, str]]) -> dict[str, str]:
    """Renames the columns that a scope selects, and those it reads from inner scopes; returns old → new names."""
    for column in scope.columns:
        source = scope.sources.get(column.table)
        if isinstance(source, Scope) and (new := renamed.get(id(source), {}).get(column.name)):
            column.set("this", exp.to_identifier(new))
    query = scope.expression
    if isinstance(query, exp.SetOperation):
        names = renamed.get(id(scope.set_operation_scopes[0]), {}) if scope.set_operation_scopes else {}
    elif isinstance(query, exp.Select):
        names = {part.alias_or_name: f"c{place}" for place, part in reversed(list(enumerate(query.expressions)))}
        query.set("expressions", [_aliased(part, f"c{place}") for place, part in enumerate(query.expressions)])
    else:
        return {}
    _name_order_keys(query, names)
    return names


def _aliased(part: exp.Expr, name: str) -> exp.Expr:
    if isinstance(part, exp.Alias):
        part.set("alias", exp.to_identifier(name))
        return part
    if isinstance(part, exp.Subquery) and part.alias:
        part.set("alias", None)
    return exp.Alias(this=part, alias=exp.to_identifier(name))


def _name_order_keys(query: exp.Query, names: dict[str, str]) -> None:
    """Replaces selected order keys (old names, positions or equal expressions) by the name of the column."""
    order = query.args.get("order")
    for ordered in order.expressions if isinstance(order, exp.Order) else ():
        key = ordered.this
        found = None
        if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(query.selects):
            found = f"c{int(key.name) - 1}"
        elif isinstance(key, exp.Column) and not key.table:
            found = names.get(key.name)
        elif isinstance(query, exp.Select):
            same = (place for place, part in enumerate(query.expressions) if part.unalias() == key)
            found = next((f"c{place}" for place in same), None)
        if found is not None:
            ordered.set("this", exp.column(found))


def _rename_sources(scope: Scope, names: dict[str, str]) -> None:
    select = scope.expression
    if not isinstance(select, exp.Select):
        return
    start = select.args.get("from_") or select.args.get("from")
    for source in [start, *(select.args.get("joins") or []), *(select.args.get("laterals") or [])]:
        inner = source.this if isinstance(source, exp.From | exp.Join) else source
        if inner is not None and (new := names.get(inner.alias_or_name)):
            inner.set("alias", exp.TableAlias(this=exp.to_identifier(new)))
    for column in select.find_all(exp.Column):
        if (new := names.get(column.table)) and _sees(column, select, column.table):
            column.set("table", exp.to_identifier(new))


def _sees(column: exp.Expr, select: exp.Select, alias: str) -> bool:
    """Returns whether no query between a column and this one has a table of the same name."""
    inner = column.find_ancestor(exp.Select)
    while inner is not None and inner is not select:
        start = inner.args.get("from_") or inner.args.get("from")
        sources = [start, *(inner.args.get("joins") or [])]
        if any(source is not None and source.this.alias_or_name == alias for source in sources):
            return False
        inner = inner.find_ancestor(exp.Select)
    return True

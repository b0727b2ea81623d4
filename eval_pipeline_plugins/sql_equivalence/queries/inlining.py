"""Puts the definitions of views and generated columns in their place, to see what a query depends on."""

from sqlglot import exp

from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlTable
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.schema.views import expression_of, tree_of

_DEEPEST = 12
_STORED = "stored"
"""Marks a table that is read below its generated columns."""
_BESIDE = ("joins", "laterals", "pivots", "sample")


def inlined(tree: exp.Expr, schema: SqlSchema) -> exp.Expr:
    """Returns a copy of a query in which subqueries stand for views and for tables with generated columns.

    It is good for looking at and not for running or proving: a CTE may hide a table that a view reads, and generated
    columns do not have their declared types.
    """
    copy = tree.copy()
    for _ in range(_DEEPEST):
        found = [(node, query) for node in copy.find_all(exp.Table) if (query := _query(node, schema)) is not None]
        if not found:
            break
        for node, query in found:
            node.replace(query)
    return copy


def _query(node: exp.Table, schema: SqlSchema) -> exp.Subquery | None:
    """Returns what stands for a table; None if it is stored as it is, or not known."""
    relation = None if node.meta.get(_STORED) or node.db else schema.relation(node.name)
    if relation is None:
        return None
    if isinstance(relation, SqlTable):
        query = _with_generated(relation) if any(column.generated for column in relation.columns) else None
    else:
        query = tree_of(relation)
    if query is None:
        return None
    alias = node.args.get("alias")
    named = alias.columns if isinstance(alias, exp.TableAlias) else []
    names = named or [exp.to_identifier(column.name) for column in relation.columns]
    told = exp.TableAlias(this=exp.to_identifier(node.alias_or_name), columns=[name.copy() for name in names])
    made = exp.Subquery(this=query.copy(), alias=told)
    for key in _BESIDE:
        if node.args.get(key):
            made.set(key, node.args[key])
    return made


def _with_generated(table: SqlTable) -> exp.Query | None:
    """Returns the query of all columns of a table with generated columns; None if one cannot be read."""
    selects: list[exp.Expr] = []
    for column in table.columns:
        expression = expression_of(table, column.name) if column.generated else exp.column(column.name)
        if expression is None:
            return None
        selects.append(exp.alias_(exp.paren(expression.copy()), column.name) if column.generated else expression)
    start = exp.to_table(table.name)
    start.meta[_STORED] = True
    return exp.select(*selects).from_(start, copy=False)

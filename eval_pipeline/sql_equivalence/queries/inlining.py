"""Puts the definitions of views and generated columns in their place, to see what a query depends on."""

from sqlglot import exp

from eval_pipeline.sql_equivalence.schema.parts import SqlTable
from eval_pipeline.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statement
from eval_pipeline.sql_equivalence.syntax.tables_in import table_nodes

_DEEPEST = 12
_STORED = "stored"
"""Marks a table that is read below its generated columns."""
_BESIDE = ("joins", "laterals", "pivots", "sample")


def inlined(tree: exp.Expr, schema: SqlSchema) -> exp.Expr:
    """Returns a copy of a query in which subqueries stand for views and for tables with generated columns.

    It is good for looking at and not for running: a CTE may hide a table that a view reads, and generated columns do
    not have their declared types.
    """
    copy = tree.copy()
    for _ in range(_DEEPEST):
        found = [(node, query) for node in table_nodes(copy) if (query := _query(node, schema)) is not None]
        if not found:
            break
        for node, query in found:
            node.replace(query)
    return copy


def _query(node: exp.Table, schema: SqlSchema) -> exp.Subquery | None:
    """Returns what stands for a table; None if it is stored as it is, or not known."""
    table = None if node.meta.get(_STORED) else schema.table(node.name, node.db)
    if table is None or (table.view is None and len(table.stored) == len(table.columns)):
        return None
    try:
        query = _with_computed(table) if table.view is None else parse_statement(table.view.sql, table.view.dialect)
    except SqlSyntaxError:
        return None
    alias = node.args.get("alias")
    names = alias.columns if isinstance(alias, exp.TableAlias) and alias.columns else _names(table)
    made = exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(node.alias_or_name), columns=names))
    for key in _BESIDE:
        if node.args.get(key):
            made.set(key, node.args[key])
    return made


def _names(table: SqlTable) -> list[exp.Identifier]:
    return [exp.to_identifier(column.name) for column in table.columns]


def _with_computed(table: SqlTable) -> exp.Expr:
    """Returns the query of all columns of a table with generated columns. Raises a SqlSyntaxError."""
    selects: list[exp.Expr] = []
    for column in table.columns:
        if column.computed is None:
            selects.append(exp.column(column.name))
        else:
            told = parse_statement(f"SELECT {column.computed.sql}", column.computed.dialect)
            selects.append(exp.alias_(exp.paren(told.expressions[0]), column.name))
    start = exp.to_table(table.name)
    start.meta[_STORED] = True
    return exp.select(*selects).from_(start, copy=False)

"""Measures how complex a query is: what it joins, filters, nests and aggregates."""

from sqlglot import exp

from eval_pipeline_plugins.tracks.sql.responses.structure import atoms

_CONNECTED = (exp.Where, exp.Having, exp.Qualify, exp.Join)


def query_parts(statement: exp.Expr) -> int:
    """Counts joins, predicates, subqueries and aggregates of a query together (docs/sql.md).

    A comma in FROM is a join; a predicate is a comparison in WHERE, HAVING, QUALIFY or ON that AND, OR and NOT connect;
    CTEs and the further branches of set operations are subqueries; window functions count as aggregates.
    """
    nodes = list(statement.walk())
    joins = sum(isinstance(node, exp.Join) for node in nodes)
    nested = sum(isinstance(node, exp.Select) for node in nodes) - 1
    windows = sum(isinstance(node, exp.Window) for node in nodes)
    aggregates = sum(isinstance(node, exp.AggFunc) and not _in_window(node) for node in nodes)
    return joins + _predicates(statement) + max(nested, 0) + windows + aggregates


def _in_window(node: exp.Expr) -> bool:
    """Whether a function is the one that an OVER clause applies to."""
    above = node.parent
    while isinstance(above, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        above = above.parent
    return isinstance(above, exp.Window)


def _predicates(statement: exp.Expr) -> int:
    conditions = [
        clause.args["on"] if isinstance(clause, exp.Join) else clause.this
        for clause in statement.find_all(*_CONNECTED)
        if not isinstance(clause, exp.Join) or clause.args.get("on") is not None
    ]
    return sum(len(list(atoms(condition))) for condition in conditions)

"""Names the SQL features of a query, by which a suite can be split."""

import re

from sqlglot import exp

from eval_pipeline_plugins.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statement

_DATE_FUNCTION = re.compile(
    r"(.*_)?(date|time|timestamp|datetime|ts|year|month|day|week|quarter|strftime|julianday|unixepoch|age|now)(_.*)?"
    r"|datediff|timestampdiff|timestampadd|dateadd|dayof\w+|getdate|curdate"
)
_DATE = re.compile(r"\d{4}-\d{1,2}(-\d{1,2}.*)?")
_DATE_NODES = (exp.CurrentDate, exp.CurrentTimestamp, exp.Extract, exp.Interval, exp.TimeToStr, exp.Date)
_DATE_TYPES = (exp.DataType.Type.DATE, *exp.DataType.TEMPORAL_TYPES)


def query_tags(sql: str, dialect: str) -> list[str]:
    """Returns which of `joins`, `nesting`, `set_operations`, `windows` and `dates` a query uses.

    A comma in FROM is a join. Subqueries and CTEs are nesting; the branches of a set operation are not. A query that
    does not parse has no tags.
    """
    try:
        statement = parse_statement(sql, dialect)
    except SqlSyntaxError:
        return []
    uses = {
        "joins": statement.find(exp.Join) is not None,
        "nesting": any(_is_nested(select) for select in statement.find_all(exp.Select)),
        "set_operations": statement.find(exp.SetOperation) is not None,
        "windows": statement.find(exp.Window) is not None,
        "dates": any(_is_of_dates(node) for node in statement.walk()),
    }
    return [tag for tag, used in uses.items() if used]


def _is_nested(select: exp.Expr) -> bool:
    """Returns whether a SELECT is inside another query, other than as a branch of the outermost set operation."""
    above = select.parent
    while isinstance(above, exp.SetOperation) or (
        isinstance(above, exp.Subquery) and isinstance(above.parent, exp.SetOperation | None)
    ):
        above = above.parent
    return above is not None


def _is_of_dates(node: exp.Expr) -> bool:
    if isinstance(node, exp.Literal):
        return node.is_string and _DATE.fullmatch(node.this) is not None
    if isinstance(node, exp.DataType):
        return node.this in _DATE_TYPES
    if isinstance(node, exp.Anonymous):
        return _DATE_FUNCTION.fullmatch(node.name.lower()) is not None
    return isinstance(node, _DATE_NODES) or (
        isinstance(node, exp.Func) and any(_DATE_FUNCTION.fullmatch(name.lower()) for name in node.sql_names())
    )

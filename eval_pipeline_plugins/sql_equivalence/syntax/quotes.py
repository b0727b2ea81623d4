"""Double quotes as SQLite reads them: a column if there is one of that name, else a text (sqlite.org/quirks)."""

from collections.abc import Iterator

from sqlglot import exp

from eval_pipeline_plugins.sql_equivalence.schema.parts import quoted
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import joined_operators

_ROW_IDS = frozenset(("rowid", "oid", "_rowid_"))


def with_texts(sql: str, statement: exp.Expr, schema: SqlSchema) -> exp.Expr:
    """Returns the statement with double-quoted names that match no visible column replaced by string literals.

    Args:
        sql: the text of the statement, because the tree does not keep the kind of quotes.
        statement: changed.
        schema: the tables. If a table is unknown, a name may be one of its columns and is kept.
    """
    if '"' not in sql:
        return statement
    sql = joined_operators(sql)  # the places in the tree are those of this text
    named = [column for column in statement.find_all(exp.Column) if not column.table and _is_double_quoted(sql, column)]
    texts = [column for column in named if not _may_be_column(column, schema)]
    for column in texts:
        if column is statement:
            return exp.Literal.string(column.name)
        column.replace(exp.Literal.string(column.name))
    return statement


def _is_double_quoted(sql: str, column: exp.Column) -> bool:
    place = column.this.meta.get("start")
    return place is not None and sql.startswith(quoted(column.name), place)


def _may_be_column(column: exp.Column, schema: SqlSchema) -> bool:
    """Returns whether the query around the name, or an outer query, has a column of that name."""
    name = column.name.lower()
    query = column.find_ancestor(exp.Query)
    while query is not None:
        branch = isinstance(query, exp.SetOperation) and not _within(column, query.args.get("order"))
        if not branch and any(found is None or found == name for found in _in_reach(query, schema)):
            return True
        query = query.find_ancestor(exp.Query)
    return name in _ROW_IDS


def _in_reach(query: exp.Expr, schema: SqlSchema) -> Iterator[str | None]:
    """Returns the names of the columns that a query's clauses see, in lower case; None if they are unknown."""
    if not isinstance(query, exp.Select):
        yield from _selected(query, schema)  # ORDER BY of a set operation
        return
    for select in query.selects:
        if isinstance(select, exp.Alias):
            yield select.alias.lower()
    for source in _sources(query):
        yield from _of_source(source, schema)


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    start = select.args.get("from_")
    joined = [start, *(select.args.get("joins") or []), *(select.args.get("laterals") or [])]
    for part in joined:
        if part is not None:
            yield part.this if isinstance(part, exp.From | exp.Join) else part


def _of_source(source: exp.Expr, schema: SqlSchema) -> Iterator[str | None]:
    alias = source.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.columns:
        yield from (column.name.lower() for column in alias.columns)
        return
    for join in source.args.get("joins") or []:  # `(a JOIN b)`
        yield from _of_source(join.this, schema)
    if isinstance(source, exp.Table) and not source.db and (common := _common(source)) is not None:
        named = common.args["alias"].columns
        yield from (column.name.lower() for column in named) if named else _selected(common.this, schema)
    elif isinstance(source, exp.Table) and (table := schema.relation(source.name)) is not None:
        yield from (column.name.lower() for column in table.columns)
    elif isinstance(source, exp.Subquery):
        yield from _selected(source.this, schema)
    elif isinstance(source, exp.Paren):
        yield from _of_source(source.this, schema)
    else:
        yield None


def _common(table: exp.Table) -> exp.CTE | None:
    """Returns the CTE that a table name refers to."""
    above = table.parent
    while above is not None:
        clause = above.args.get("with_")
        if isinstance(clause, exp.With):
            common: exp.CTE
            for common in clause.expressions:
                # Within its own definition the name of a CTE means another table, unless it is recursive and names
                # its columns.
                if common.alias.lower() == table.name.lower() and not _within(table, common):
                    return common
        above = above.parent
    return None


def _within(node: exp.Expr, outer: exp.Expr | None) -> bool:
    above: exp.Expr | None = node
    while above is not None:
        if above is outer:
            return True
        above = above.parent
    return False


def _selected(query: exp.Expr, schema: SqlSchema) -> Iterator[str | None]:
    """Returns the names of a query's output columns."""
    if isinstance(query, exp.Subquery):
        yield from _of_source(query, schema) if isinstance(query.this, exp.Table) else _selected(query.this, schema)
    elif isinstance(query, exp.SetOperation):
        yield from _selected(query.this, schema)
    elif isinstance(query, exp.Select):
        for select in query.selects:
            if select.is_star:
                for source in _sources(query):
                    yield from _of_source(source, schema)
            else:
                yield select.alias_or_name.lower()
    else:
        yield None

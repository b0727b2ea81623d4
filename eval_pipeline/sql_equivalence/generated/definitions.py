"""Says in the dialect of an engine what defines the views and generated columns of generated databases."""

from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sql_equivalence.queries.rewriting import qualified, typed
from eval_pipeline.sql_equivalence.schema.parts import Definition, SqlTable, quoted
from eval_pipeline.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statement


def generated_in(table: SqlTable, engine: str) -> dict[str, str]:
    """Returns the clause of each generated column of a table, by the column's name. Raises a SqlError."""
    return {
        column.name: f" GENERATED ALWAYS AS ({_expression(column.computed, table, engine)})"
        for column in table.columns
        if column.computed is not None
    }


def views_in(schema: SqlSchema, engine: str) -> dict[str, str]:
    """Returns the statements that create the views of a schema, by the views' names in lower case.

    Raises a SqlError if one cannot be said in the engine's dialect.
    """
    found = {}
    for table in schema.referenced_first() if schema.has_computed else ():
        if table.view is not None:
            columns = ", ".join(quoted(column.name) for column in table.columns)
            query = _query(table.view, schema, engine)
            found[table.name.lower()] = f"CREATE VIEW {quoted(table.name)} ({columns}) AS {query}"
    return found


@lru_cache(maxsize=256)
def _query(view: Definition, schema: SqlSchema, engine: str) -> str:
    return view.sql if view.dialect == engine else _translated(view.sql, view.dialect, schema, engine)


@lru_cache(maxsize=256)
def _expression(computed: Definition, table: SqlTable, engine: str) -> str:
    if computed.dialect == engine:
        return computed.sql
    name = exp.to_identifier(table.name, quoted=True).sql(dialect=computed.dialect)
    tree = _typed(f"SELECT {computed.sql} FROM {name}", computed.dialect, SqlSchema((table,)))
    for column in tree.find_all(exp.Column):
        column.set("table", None)
    return _said(tree.selects[0].unalias(), engine)


def _translated(sql: str, dialect: str, schema: SqlSchema, engine: str) -> str:
    return _said(_typed(sql, dialect, schema), engine)


def _typed(sql: str, dialect: str, schema: SqlSchema) -> exp.Query:
    try:
        tree = parse_statement(sql, dialect)
    except SqlSyntaxError as error:
        raise SqlError(ErrorClass.SYNTAX, f"a view or generated column cannot be read: {error}") from error
    if not isinstance(tree, exp.Query):
        raise SqlError(ErrorClass.SYNTAX, "the definition of a view is no query")
    found = typed(qualified(tree, schema, dialect) or tree, schema, dialect)
    assert isinstance(found, exp.Query)
    return found


def _said(tree: exp.Expr, engine: str) -> str:
    try:
        return str(tree.sql(dialect=engine, comments=False))
    except (SqlglotError, RecursionError, ValueError) as error:
        raise SqlError(ErrorClass.SYNTAX, f"a definition cannot be said in the dialect of {engine}: {error}") from error

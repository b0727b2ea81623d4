"""Says in the dialect of an engine what tables and views of generated databases are made with."""

from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline_plugins.sql_equivalence.generated.values import family_of
from eval_pipeline_plugins.sql_equivalence.queries.rewriting import qualified, typed
from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlColumn, SqlTable, SqlView, create_view, quoted
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.schema.views import expression_of, tree_of

_SQLITE_TYPES = {
    "int": "INTEGER",
    "float": "REAL",
    "text": "TEXT",
    "datetext": "TEXT",
    "date": "DATE",
    "timestamp": "DATETIME",
    "time": "TEXT",
    "bool": "BOOLEAN",
    "blob": "BLOB",
}


def columns_in(table: SqlTable, engine: str) -> str:
    """Returns the columns of a table for CREATE TABLE: all that results depend on, and no constraint.

    Raises a SqlError if one cannot be said in the engine's dialect.
    """
    return ", ".join(f"{quoted(c.name)} {_type(c, table, engine)}{_computed(c, table, engine)}" for c in table.columns)


def _type(column: SqlColumn, table: SqlTable, engine: str) -> str:
    collation = f" COLLATE {column.collation}" if column.collation else ""
    if engine == "duckdb":
        return f"{column.type}{collation}"
    if column.declared or table.dialect == "sqlite":
        return f"{column.declared}{collation}"
    return f"{_SQLITE_TYPES.get(family_of(column), '')}{collation}"


def _computed(column: SqlColumn, table: SqlTable, engine: str) -> str:
    if not column.generated:
        return ""
    if table.dialect == engine:
        return f" GENERATED ALWAYS AS ({column.generated})"
    tree = expression_of(table, column.name)
    if tree is None:
        raise SqlError(ErrorClass.SYNTAX, f"the generated column {column.name} cannot be read")
    query = exp.select(exp.paren(tree.copy())).from_(exp.to_table(table.name))
    found = _typed(query, SqlSchema((table,)), table.dialect).selects[0].unalias()
    for part in list(found.find_all(exp.Column)):
        part.set("table", None)
    return f" GENERATED ALWAYS AS {_said(found, engine)}"


def views_in(schema: SqlSchema, engine: str) -> dict[str, str]:
    """Returns the statements that create the views of a schema, by the views' names in lower case.

    Raises a SqlError if one cannot be said in the engine's dialect.
    """
    return {view.name.lower(): _view(view, schema, engine) for view in schema.views}


def _view(view: SqlView, schema: SqlSchema, engine: str) -> str:
    if view.dialect == engine:
        return create_view(view)
    return create_view(view, _translated(view, schema, engine))


@lru_cache(maxsize=256)
def _translated(view: SqlView, schema: SqlSchema, engine: str) -> str:
    tree = tree_of(view)
    if tree is None or not all(column.type for column in view.columns):
        raise SqlError(ErrorClass.SYNTAX, f"the view {view.name} cannot be translated")
    return _said(_typed(tree, schema, view.dialect), engine)


def _typed(tree: exp.Query, schema: SqlSchema, dialect: str) -> exp.Query:
    """Returns a query with the types that a translation needs. Raises a SqlError if it does not fit the schema."""
    found = qualified(tree, schema, dialect)
    if not isinstance(found, exp.Query):
        raise SqlError(ErrorClass.SYNTAX, "a definition does not fit the tables")
    made = typed(found, schema, dialect)
    assert isinstance(made, exp.Query)
    return made


def _said(tree: exp.Expr, engine: str) -> str:
    try:
        return str(tree.sql(dialect=engine, comments=False))
    except (SqlglotError, RecursionError, ValueError) as error:
        raise SqlError(ErrorClass.SYNTAX, f"a definition cannot be said in the dialect of {engine}: {error}") from error

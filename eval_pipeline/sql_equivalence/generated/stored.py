"""What of a schema has rows: its tables without views and generated columns, which the engine computes from them."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from sqlglot import exp

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sql_equivalence.generated.checks import parsed_check
from eval_pipeline.sql_equivalence.schema.parts import Definition, SqlTable
from eval_pipeline.sql_equivalence.schema.schema import SqlSchema, tables_read
from eval_pipeline.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statement


def stored(schema: SqlSchema) -> SqlSchema:
    """Returns the tables with the columns that rows give; constraints on generated columns are said of those.

    Raises a SqlError if a constraint cannot be read.
    """
    if not schema.has_computed:
        return schema
    return SqlSchema(tuple(_stored(table) for table in schema.tables if table.view is None))


@lru_cache(maxsize=256)
def _stored(table: SqlTable) -> SqlTable:
    computed = {c.name.lower(): c.computed for c in table.columns if c.computed is not None}
    if not computed:
        return table
    checks = [_written_out(check, computed) for check in table.checks]
    checks += [
        f"({expression_of(column.computed).sql(dialect='duckdb')}) IS NOT NULL"
        for column in table.columns
        if column.computed is not None and not column.nullable
    ]
    return replace(table, columns=table.stored, checks=tuple(checks))


def _written_out(check: str, computed: dict[str, Definition]) -> str:
    """Returns a condition with the generated columns replaced by their expressions."""
    condition = parsed_check(check)
    if not any(column.name.lower() in computed for column in condition.find_all(exp.Column)):
        return check
    whole = exp.paren(condition)  # a copy, whose every column has a parent
    for _ in computed:  # a generated column may be computed from another one
        for column in list(whole.find_all(exp.Column)):
            if (definition := computed.get(column.name.lower())) is not None:
                column.replace(exp.paren(expression_of(definition)))
    return str(whole.sql(dialect="duckdb"))


def expression_of(definition: Definition) -> exp.Expr:
    """Returns the expression of a generated column. Raises a SqlError if it cannot be read."""
    try:
        found: exp.Expr = parse_statement(f"SELECT {definition.sql}", definition.dialect).expressions[0]
    except (SqlSyntaxError, LookupError) as error:
        raise SqlError(ErrorClass.SYNTAX, f"the expression {definition.sql} cannot be read") from error
    return found


def why_not_generated(schema: SqlSchema, used: SqlSchema) -> str:
    """Returns why rows of a pair's tables cannot be generated, in one sentence; empty if they can.

    Args:
        schema: the whole schema.
        used: the tables that the pair needs.
    """
    return next((why for table in used.tables for why in _obstacles(table, schema)), "")


def _obstacles(table: SqlTable, schema: SqlSchema) -> Iterator[str]:
    if table.view is None and table.hidden is None and len(table.stored) == len(table.columns) and table.schema is None:
        return
    name = table.full_name
    if table.schema is not None:
        yield f"{name} is not in the default schema, and rows are generated in that one only"
    if table.hidden is not None:
        yield f"{name} is a virtual table, for which no rows are generated"
    if table.view is not None:
        yield from _of_view(table, table.view, schema)
    keys = [table.primary_key, *table.unique, *(key.columns for key in table.foreign_keys)]
    keys += [
        key.references for other in schema.tables for key in other.foreign_keys if schema.table(key.table) is table
    ]
    in_keys = {column.lower() for key in keys for column in key}
    for column in table.columns:
        if column.computed is not None and not column.computed.sql:
            yield f"the expression of the generated column {name}.{column.name} cannot be read"
        if column.computed is not None and column.name.lower() in in_keys:
            yield f"the generated column {name}.{column.name} is in a key, for which no rows are generated"


def _of_view(table: SqlTable, view: Definition, schema: SqlSchema) -> Iterator[str]:
    read = tables_read(view)
    if not read and not _is_query(view):
        yield f"the query of the view {table.full_name} cannot be read"
    for one in read:
        found = schema.table(one.name, one.schema)
        if found is not None and found.schema is not None:
            yield f"the view {table.full_name} reads {found.full_name}, for which no rows are generated"


def _is_query(view: Definition) -> bool:
    try:
        return isinstance(parse_statement(view.sql, view.dialect), exp.Query)
    except SqlSyntaxError:
        return False

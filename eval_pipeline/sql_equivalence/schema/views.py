"""Reads views and generated columns from their definitions."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from eval_pipeline.sql_equivalence.schema.parts import Definition, SqlColumn, SqlTable
from eval_pipeline.sql_equivalence.schema.schema import types
from eval_pipeline.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statement

Tables = tuple[SqlTable, ...]

_UNFIT = (SqlglotError, SqlSyntaxError, RecursionError, ValueError, KeyError, AttributeError, TypeError)
"""What sqlglot raises on queries that it cannot resolve."""


def is_computed(kind: exp.Expr | None) -> bool:
    """Returns whether a constraint makes a column a generated one; an identity does not."""
    if isinstance(kind, exp.GeneratedAsIdentityColumnConstraint):
        return kind.args.get("expression") is not None
    return isinstance(kind, exp.ComputedColumnConstraint)


def expressions_in(ddl: str, dialect: str) -> dict[tuple[str, str], str]:
    """Returns the expressions of generated columns in CREATE TABLE statements as they are written.

    The tree is no help, since sqlglot reads `AS (a) NOT NULL` as `AS (a IS NOT NULL)`.

    Returns:
        Texts by the names of table and column, in lower case.
    """
    found: dict[tuple[str, str], str] = {}
    table = column = ""
    depth, opened = 0, -1
    tokens = sqlglot.tokenize(ddl, read=dialect)
    for before, token in pairwise(tokens):
        kind = token.token_type
        if kind == TokenType.L_PAREN:
            depth += 1
            if depth == 1:
                table = before.text.lower()
            elif depth == 2 and before.token_type == TokenType.ALIAS:
                opened = token.end + 1
        elif kind == TokenType.R_PAREN:
            depth -= 1
            if depth == 1 and opened >= 0:
                found[table, column] = ddl[opened : token.start].strip()
                opened = -1
        elif depth == 1 and before.token_type in (TokenType.L_PAREN, TokenType.COMMA):
            column = token.text.lower()
    return found


def query_of(create: str, dialect: str) -> str:
    """Returns the query in the text of a CREATE VIEW statement, as it is written; empty if it is not found."""
    depth, named = 0, False
    try:
        tokens = sqlglot.tokenize(create, read=dialect)
    except SqlglotError:
        return ""
    for token in tokens:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if named and depth == 0 and token.token_type == TokenType.ALIAS:
            return create[token.end + 1 :].strip().rstrip(";").rstrip()
        named = named or token.token_type == TokenType.VIEW
    return ""


def view_made_by(create: exp.Expr, tables: Sequence[SqlTable], dialect: str) -> SqlTable | None:
    """Returns the view that a statement makes; None if it makes none, or its columns cannot be told from the tables."""
    if not isinstance(create, exp.Create) or create.kind != "VIEW":
        return None
    target, query = create.this, create.expression
    named = target.expressions if isinstance(target, exp.Schema) else []
    table = target.this if isinstance(target, exp.Schema) else target
    if not isinstance(query, exp.Query) or not isinstance(table, exp.Table):
        return None
    definition = Definition(query.sql(dialect=dialect, comments=False), dialect)
    columns = columns_of(definition, tables)
    if not columns or any(not column.name or column.name == "*" for column in columns):
        return None
    if named:
        if len(named) != len(columns):
            return None
        columns = tuple(replace(c, name=given.name) for c, given in zip(columns, named, strict=True))
    return SqlTable(table.name, columns, view=definition)


def columns_of(definition: Definition, tables: Iterable[SqlTable]) -> tuple[SqlColumn, ...]:
    """Returns a query's columns, with empty types where these are not known; none if it does not fit the tables."""
    try:
        known: dict[str, object] = {table.name: types(table) for table in tables if table.schema is None}
        tree = qualify(
            parse_statement(definition.sql, definition.dialect),
            schema=known,
            dialect=definition.dialect,
            quote_identifiers=False,
        )
        typed = annotate_types(tree, schema=known, dialect=definition.dialect)
    except _UNFIT:
        return ()
    selects = typed.selects if isinstance(typed, exp.Query) else []
    return tuple(SqlColumn(select.alias_or_name, _type(select)) for select in selects)


def _type(select: exp.Expr) -> str:
    found = select.type
    if found is None or found.this in (exp.DataType.Type.UNKNOWN, exp.DataType.Type.NULL):
        return ""
    return str(found.sql(dialect="duckdb"))


def with_known_types(table: SqlTable, dialect: str) -> SqlTable:
    """Returns a table in which generated columns without a declared type have that of their expression."""
    if all(column.type for column in table.columns):
        return table
    asked = [column for column in table.columns if not column.type and column.computed is not None]
    selects = ", ".join(f"({column.computed.sql})" for column in asked if column.computed is not None)
    name = exp.to_identifier(table.name, quoted=True).sql(dialect=dialect)
    found = columns_of(Definition(f"SELECT {selects} FROM {name}", dialect), [table])
    kinds = {column.name: told.type for column, told in zip(asked, found, strict=False)}
    return replace(table, columns=tuple(replace(c, type=c.type or kinds.get(c.name, "")) for c in table.columns))

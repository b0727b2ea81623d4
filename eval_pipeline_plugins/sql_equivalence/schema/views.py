"""What views and generated columns are computed from."""

from collections.abc import Collection
from functools import lru_cache
from itertools import pairwise

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlTable, SqlView
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statement
from eval_pipeline_plugins.sql_equivalence.syntax.tables_in import base_tables


@lru_cache(maxsize=512)
def tree_of(view: SqlView) -> exp.Query | None:
    """Returns the query of a view, which must not be changed; None if it cannot be read."""
    try:
        found = parse_statement(view.query, view.dialect)
    except (SqlSyntaxError, ValueError):
        return None
    return found if isinstance(found, exp.Query) else None


def reads_of(query: str, dialect: str, macros: Collection[str] | None = None) -> tuple[str, ...] | None:
    """Returns the names, in lower case, of the tables and views that a query reads; None if nobody can say.

    Args:
        query: the query of a view.
        dialect: its dialect.
        macros: the functions, in lower case, that may read anything; by default, all that the parser does not know.
    """
    try:
        tree = parse_statement(query, dialect)
    except (SqlSyntaxError, ValueError):
        return None
    unknown = {found.name.lower() for found in tree.find_all(exp.Anonymous, exp.AnonymousAggFunc)}
    if unknown if macros is None else unknown.intersection(macros):
        return None
    read = {table.name for table in base_tables(tree)}
    if dialect == "sqlite":  # `x IN t` means the rows of a table there
        fields = (found.args.get("field") for found in tree.find_all(exp.In))
        read |= {field.name.lower() for field in fields if isinstance(field, exp.Column)}
    return tuple(sorted(read))


@lru_cache(maxsize=512)
def expression_of(table: SqlTable, name: str) -> exp.Expr | None:
    """Returns the expression of a generated column, which must not be changed; None if it cannot be read."""
    column = table.column(name)
    try:
        found = parse_statement(f"SELECT {column.generated}" if column is not None else "", table.dialect or "duckdb")
    except (SqlSyntaxError, ValueError):
        return None
    return found.selects[0] if isinstance(found, exp.Select) and len(found.selects) == 1 else None


def query_of(create: str, dialect: str) -> str:
    """Returns the query in the text of a CREATE VIEW statement as it is written; empty if it is not found."""
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


def generated_in(create: str, dialect: str) -> dict[str, str]:
    """Returns the expressions of the generated columns in a CREATE TABLE statement as they are written.

    Returns:
        Texts by the names of columns, in lower case.
    """
    found: dict[str, str] = {}
    column = ""
    depth, opened = 0, -1
    try:
        tokens = sqlglot.tokenize(create, read=dialect)
    except SqlglotError:
        return {}
    for before, token in pairwise(tokens):
        if token.token_type == TokenType.L_PAREN:
            depth += 1
            if depth == 2 and before.token_type == TokenType.ALIAS:
                opened = token.end + 1
        elif token.token_type == TokenType.R_PAREN:
            depth -= 1
            if depth == 1 and opened >= 0:
                found[column] = create[opened : token.start].strip()
                opened = -1
        elif depth == 1 and before.token_type in (TokenType.L_PAREN, TokenType.COMMA):
            column = token.text.lower()
    return found

"""Parsing SQL with sqlglot: one statement, or one sentence that says why not."""

import logging
from functools import lru_cache

import sqlglot
from sqlglot import Dialect, Token, TokenType, exp
from sqlglot.errors import ErrorLevel, SqlglotError, TokenError

from eval_pipeline.tracks.sql.words import DEFAULT_DIALECT

LONGEST = 100_000
"""Characters of a statement: a longer one is not a query that a model wrote in earnest, and would take seconds."""
_AFTER_LIMIT = frozenset(
    (
        *(TokenType.OFFSET, TokenType.COMMA, TokenType.R_PAREN, TokenType.SEMICOLON),
        *(TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT),
    )
)

# sqlglot warns of statements that it only keeps as text; here they are refused, which says it better.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


class SqlSyntaxError(ValueError):
    """Text that is no SQL of the dialect; the message is one sentence."""


def parse_statements(sql: str, dialect: str = DEFAULT_DIALECT, *, longest: int | None = LONGEST) -> list[exp.Expr]:
    """The statements of a text, empty ones left out.

    Args:
        sql: the text.
        dialect: sqlglot's name.
        longest: characters that it may have; None where it is no model's.

    Raises:
        SqlSyntaxError: the text does not parse, is too long, or has none.
        ValueError: sqlglot does not know the dialect.
    """
    Dialect.get_or_raise(dialect)
    if longest is not None and len(sql) > longest:
        raise SqlSyntaxError(f"the SQL is longer than {longest:,} characters")
    if "\x00" in sql:
        raise SqlSyntaxError("the SQL has a NUL character")
    try:
        parsed = _parse(sql, dialect)
    except SqlglotError as error:
        raise SqlSyntaxError(first_line(error)) from error
    except RecursionError as error:
        raise SqlSyntaxError("the SQL is nested too deeply") from error
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        # Compiled, sqlglot trips over some texts (`->`) instead of complaining.
        raise SqlSyntaxError("the SQL does not parse") from error
    found = [statement for statement in parsed if statement is not None and not isinstance(statement, exp.Semicolon)]
    if not found:
        raise SqlSyntaxError("there is no statement")
    return found


@lru_cache(maxsize=512)
def shared_statements(sql: str, dialect: str = DEFAULT_DIALECT) -> tuple[exp.Expr, ...]:
    """The same, remembered: validator and metrics of a turn look at the same texts. Not to be changed; copy first.

    Raises:
        SqlSyntaxError: as `parse_statements` does.
    """
    return tuple(parse_statements(sql, dialect))


def parse_statement(sql: str, dialect: str = DEFAULT_DIALECT) -> exp.Expr:
    """The only statement of a text. Raises SqlSyntaxError, also where there are several."""
    found = parse_statements(sql, dialect)
    if len(found) > 1:
        raise SqlSyntaxError(f"expected one statement, found {len(found)}")
    return found[0]


def translated(sql: str, dialect: str, into: str) -> str:
    """The statements of a text in another dialect. Raises SqlSyntaxError, also for what that dialect cannot say."""
    statements = parse_statements(sql, dialect, longest=None)
    try:
        return ";\n".join(statement.sql(dialect=into) for statement in statements)
    except (SqlglotError, RecursionError, TypeError, ValueError, AttributeError, LookupError) as error:
        raise SqlSyntaxError(f"it cannot be said in the dialect {into}") from error


def _parse(sql: str, dialect: str) -> list[exp.Expr | None]:
    try:
        return sqlglot.parse(sql, dialect=dialect, error_level=ErrorLevel.RAISE)
    except SqlglotError:
        bracketed = _with_bracketed_limits(sql, dialect) if "%" in sql else sql
        if bracketed == sql:
            raise
        return sqlglot.parse(bracketed, dialect=dialect, error_level=ErrorLevel.RAISE)


def _with_bracketed_limits(sql: str, dialect: str) -> str:
    """The text with brackets around expressions after LIMIT: without them sqlglot reads `%` there as a percentage."""
    tokens = sqlglot.tokenize(sql, read=dialect)
    inserts: list[tuple[int, str]] = []
    for place, token in enumerate(tokens):
        if token.token_type == TokenType.LIMIT and (last := _end_of_expression(tokens, place + 1)) > place:
            inserts += [(tokens[place + 1].start, "("), (tokens[last].end + 1, ")")]
    for position, bracket in sorted(inserts, reverse=True):
        sql = sql[:position] + bracket + sql[position:]
    return sql


def _end_of_expression(tokens: list[Token], begin: int) -> int:
    """The place of the last token of an expression that begins at a place."""
    depth = 0
    for place in range(begin, len(tokens)):
        kind = tokens[place].token_type
        if depth == 0 and kind in _AFTER_LIMIT:
            return place - 1
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
    return len(tokens) - 1


def first_line(error: SqlglotError) -> str:
    """What sqlglot says of an error, without the lines that show the place."""
    # Of what cannot be cut into words the cause says more than the error.
    told = error.__context__ if isinstance(error.__context__, TokenError) else error
    # sqlglot underlines the place with terminal codes, which nobody wants in a table.
    text = str(told).replace("\x1b[4m", "").replace("\x1b[0m", "")
    return text.splitlines()[0].strip() or "the SQL does not parse"

"""Parses SQL with sqlglot; errors are one sentence."""

import logging
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

import sqlglot
from sqlglot import Dialect, Token, TokenType, exp
from sqlglot.errors import ErrorLevel, SqlglotError, TokenError

_APART = re.compile(r"[<>!]\s+[=>]")
_PARTS = re.compile(
    r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*|/\*.*?\*/)|(?:([<>!])\s+(=)|(<)\s+(>))(?![=>])""", re.DOTALL
)


def joined_operators(sql: str) -> str:
    """Joins `! =`, `> =`, `< =` and `< >` to one token each, as Spider's own evaluator does.

    Quoted text and comments are not changed.
    """
    if not _APART.search(sql):
        return sql
    return _PARTS.sub(lambda found: found[1] or "".join(filter(None, found.group(2, 3, 4, 5))), sql)


DEFAULT_DIALECT = "duckdb"
"""Of texts of which nothing else is said."""
LONGEST = 100_000
"""Characters of a statement: a longer one is not a query that a model wrote in earnest, and would take seconds."""
TOO_DEEP = "the SQL is nested too deeply"
DEEPEST = 800
"""Levels of a statement's tree: what walks it takes a frame of Python's stack for each."""
MOST_OPEN = 400
"""Round brackets open at once: thousands of them make sqlglot run out of stack, which ends the process."""
MOST_BRACKETS = 400
"""Square brackets of a text: sqlglot takes the square of their number to read `a[1][1][1]`."""
_VERBS = frozenset(
    "CHECKPOINT DEALLOCATE CLUSTER DISCARD LISTEN UNLISTEN NOTIFY START SAVEPOINT RELEASE REINDEX FLUSH SHUTDOWN "
    "RESTART RESET DBCC RECONFIGURE CLOSE OPEN FETCH HELP BINLOG PURGE HANDLER RAISERROR WAITFOR RESTORE".split()
)
"""What real statements begin with that sqlglot reads as bare expressions; the validator says why they may not run."""
_AFTER_LIMIT = frozenset(
    (
        *(TokenType.OFFSET, TokenType.COMMA, TokenType.R_PAREN, TokenType.SEMICOLON),
        *(TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT),
    )
)
_STATEMENTS = frozenset(
    (
        *(TokenType.ALTER, TokenType.DROP, TokenType.GRANT, TokenType.INSERT, TokenType.INSTALL),
        *(TokenType.REVOKE, TokenType.ROLLBACK),
    )
)
_BEFORE_NAMES = frozenset(
    (
        *(TokenType.SELECT, TokenType.DISTINCT, TokenType.COMMA, TokenType.FROM, TokenType.JOIN, TokenType.WHERE),
        *(TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.ON, TokenType.HAVING, TokenType.L_PAREN),
        *(TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.EQ, TokenType.NEQ, TokenType.GT, TokenType.LT),
        *(TokenType.GTE, TokenType.LTE, TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH),
    )
)

# sqlglot warns of statements that it keeps as text. Here they are refused, so the warning is not needed.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


class SqlSyntaxError(ValueError):
    """The text is not SQL of the dialect; the message is one sentence."""


def parse_statements(sql: str, dialect: str = DEFAULT_DIALECT, *, longest: int | None = LONGEST) -> list[exp.Expr]:
    """Returns the statements of a text without empty ones.

    Args:
        sql: the text.
        dialect: sqlglot's name.
        longest: maximum number of characters; None if no model wrote the text.

    Raises:
        SqlSyntaxError: the text does not parse, is too long, or has no statement.
        ValueError: sqlglot does not know the dialect.
    """
    Dialect.get_or_raise(dialect)
    if longest is not None and len(sql) > longest:
        raise SqlSyntaxError(f"the SQL is longer than {longest:,} characters")
    if "\x00" in sql:
        raise SqlSyntaxError("the SQL has a NUL character")
    try:
        why_not = _too_many_brackets(sql, dialect)
        parsed = [] if why_not else _with_names(_parse(sql, dialect), dialect)
    except SqlglotError as error:
        raise SqlSyntaxError(first_line(error)) from error
    except RecursionError as error:
        raise SqlSyntaxError(TOO_DEEP) from error
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        # The compiled sqlglot fails with other exceptions on some texts (`->`).
        raise SqlSyntaxError("the SQL does not parse") from error
    if why_not:
        raise SqlSyntaxError(why_not)
    found = [statement for statement in parsed if statement is not None and not isinstance(statement, exp.Semicolon)]
    if not found:
        raise SqlSyntaxError("there is no statement")
    if any(map(_is_no_statement, found)):
        raise SqlSyntaxError("the text is no SQL statement")
    if len(sql) > DEEPEST and any(map(_is_too_deep, found)):  # a level takes a character at least
        raise SqlSyntaxError(TOO_DEEP)
    return found


def _with_names(statements: list[exp.Expr | None], dialect: str) -> list[exp.Expr | None]:
    """Writes `unnest(x) t` as `unnest(x) AS t(t)` in the trees: in PostgreSQL the column has the alias's name."""
    if dialect != "postgres":
        return statements
    for unnest in (found for one in statements if one is not None for found in one.find_all(exp.Unnest)):
        holder = unnest.parent if isinstance(unnest.parent, exp.Lateral) else unnest
        alias = holder.args.get("alias")
        if not isinstance(alias, exp.TableAlias) or alias.this is None or alias.columns:
            continue
        names = [alias.this.copy()]
        if unnest.args.get("offset") is True:
            numbers = exp.to_identifier("ordinality")
            if holder is unnest:
                unnest.set("offset", numbers)
            else:
                names.append(numbers)
        alias.set("columns", names)
    return statements


def _too_many_brackets(sql: str, dialect: str) -> str | None:
    """Returns why a text must not be passed to sqlglot; None if it may be."""
    if sql.count("(") <= MOST_OPEN and sql.count("[") <= MOST_BRACKETS:
        return None
    depth = square = 0
    for token in sqlglot.tokenize(sql, read=dialect):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        square += token.token_type == TokenType.L_BRACKET
        if depth > MOST_OPEN:
            return TOO_DEEP
    return f"the SQL has more than {MOST_BRACKETS} square brackets" if square > MOST_BRACKETS else None


def _is_no_statement(found: exp.Expr) -> bool:
    """Returns whether sqlglot read a bare expression, such as `SELEC * FORM x`, a product with the alias x."""
    if not isinstance(found, exp.Condition | exp.Alias | exp.Aliases) or isinstance(found, exp.Query):
        return False
    words = found.sql(comments=False).split(maxsplit=1)
    return not words or words[0].upper().rstrip("(") not in _VERBS


def _is_too_deep(statement: exp.Expr) -> bool:
    level = [statement]
    for _ in range(DEEPEST):
        level = [below for node in level for below in node.iter_expressions()]
        if not level:
            return False
    return True


@lru_cache(maxsize=512)
def shared_statements(sql: str, dialect: str = DEFAULT_DIALECT) -> tuple[exp.Expr, ...]:
    """Returns the statements from a cache, because validator and metrics of a turn parse the same texts.

    Copy them before changing them.

    Raises:
        SqlSyntaxError: as `parse_statements` does.
    """
    return tuple(parse_statements(sql, dialect))


def parse_statement(sql: str, dialect: str = DEFAULT_DIALECT) -> exp.Expr:
    """Returns the only statement of a text. Raises a SqlSyntaxError, also if there are several."""
    found = parse_statements(sql, dialect)
    if len(found) > 1:
        raise SqlSyntaxError(f"expected one statement, found {len(found)}")
    return found[0]


def translated(sql: str, dialect: str, into: str) -> str:
    """Returns the statements in another dialect. Raises a SqlSyntaxError, also if that dialect cannot express them."""
    statements = parse_statements(sql, dialect, longest=None)
    try:
        return ";\n".join(statement.sql(dialect=into) for statement in statements)
    except (SqlglotError, RecursionError, TypeError, ValueError, AttributeError, LookupError) as error:
        raise SqlSyntaxError(f"it cannot be said in the dialect {into}") from error


def _parse(sql: str, dialect: str) -> list[exp.Expr | None]:
    sql = joined_operators(sql)
    try:
        return sqlglot.parse(sql, dialect=dialect, error_level=ErrorLevel.RAISE)
    except SqlglotError:
        plainer = _with_quoted_names(_with_bracketed_limits(sql, dialect) if "%" in sql else sql, dialect)
        if plainer == sql:
            raise
        return sqlglot.parse(plainer, dialect=dialect, error_level=ErrorLevel.RAISE)


def _with_quoted_names(sql: str, dialect: str) -> str:
    """Quotes columns and tables named as statements begin (`grant`), which engines read and sqlglot does not."""
    parts, end = [], 0
    for before, token in pairwise(sqlglot.tokenize(sql, read=dialect)):
        if token.token_type in _STATEMENTS and before.token_type in _BEFORE_NAMES:
            parts += [sql[end : token.start], exp.to_identifier(token.text, quoted=True).sql(dialect)]
            end = token.end + 1
    return "".join([*parts, sql[end:]])


def _with_bracketed_limits(sql: str, dialect: str) -> str:
    """Puts brackets around expressions after LIMIT: without them sqlglot reads `%` there as a percentage."""
    tokens = sqlglot.tokenize(sql, read=dialect)
    inserts: list[tuple[int, str]] = []
    for first, last in _limit_expressions(tokens):
        inserts += [(tokens[first].start, "("), (tokens[last].end + 1, ")")]
    pieces, position = [], 0
    for place, bracket in sorted(inserts):
        pieces += [sql[position:place], bracket]
        position = place
    return "".join([*pieces, sql[position:]])


def _limit_expressions(tokens: list[Token]) -> Iterator[tuple[int, int]]:
    """Returns the first and last token after each LIMIT, in one pass because there may be thousands."""
    depth = 0
    under_way: list[tuple[int, int]] = []  # first token and depth of brackets, inner ones last
    for place, token in enumerate(tokens):
        kind = token.token_type
        ends = kind in _AFTER_LIMIT or kind == TokenType.LIMIT
        if ends and under_way and under_way[-1][1] == depth:
            first, _ = under_way.pop()
            if first < place:
                yield first, place - 1
        if kind == TokenType.LIMIT:
            under_way.append((place + 1, depth))
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
    for first, _ in under_way:
        if first < len(tokens):
            yield first, len(tokens) - 1


def first_line(error: SqlglotError) -> str:
    """Returns sqlglot's message of an error without the lines that show the position."""
    # For texts that cannot be tokenized, the cause says more than the error.
    told = error.__context__ if isinstance(error.__context__, TokenError) else error
    # sqlglot underlines the position with terminal codes, which do not belong in a table.
    text = str(told).replace("\x1b[4m", "").replace("\x1b[0m", "")
    return text.splitlines()[0].strip() or "the SQL does not parse"

"""Compares two query texts, ignoring white space, comments, case of keywords and a trailing semicolon."""

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from eval_pipeline_plugins.sql_equivalence.syntax.parsing import DEFAULT_DIALECT

# Names, whose case may matter, unlike that of keywords.
_NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NATIONAL_STRING})


def identical(generated: str, expected: str, dialect: str = DEFAULT_DIALECT) -> bool:
    """Returns whether two queries have the same text except for white space, case of keywords and a last semicolon."""
    if generated.strip() == expected.strip():
        return True
    try:
        return _words(generated, dialect) == _words(expected, dialect)
    except SqlglotError:
        return False


def _words(sql: str, dialect: str) -> list[tuple[TokenType, str]]:
    tokens = sqlglot.tokenize(sql, read=dialect)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    following = [*tokens[1:], None]
    return [(token.token_type, _word(token, after)) for token, after in zip(tokens, following, strict=False)]


def _word(token: Token, after: Token | None) -> str:
    called = after is not None and after.token_type is TokenType.L_PAREN and token.token_type is TokenType.VAR
    return token.text if token.token_type in _NAMES and not called else token.text.upper()

"""Splits scripts into statements, and checks that they only read, change and define data."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import LONGEST, SqlSyntaxError, parse_statements
from eval_pipeline_plugins.tracks.sql.cases.words import SAFETY, SYNTAX
from eval_pipeline_plugins.tracks.sql.validation.safety import beyond_changes
from eval_pipeline_plugins.tracks.sql.validation.validator import Validation, ValidationError

_BEFORE = r"(?:\s++|--[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+"
"""White space and comments. Nothing of it is tried twice, so that a long text cannot take long."""
_DEFINED = "TABLE|VIEW|INDEX|TRIGGER|FUNCTION|PROCEDURE|MACRO|SEQUENCE|TYPE|DOMAIN|SCHEMA"
_KIND = re.compile(
    rf"(?is){_BEFORE}\(*+(?:"
    r"SELECT|WITH|VALUES|FROM|INSERT|REPLACE|UPDATE|DELETE|MERGE|TRUNCATE|CALL|DO|COMMENT\s+ON"
    r"|BEGIN|START\s+TRANSACTION|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE|REFRESH\s+MATERIALIZED\s+VIEW"
    rf"|CREATE\s++(?:OR\s++REPLACE\s++)?+(?:(?:TEMP|TEMPORARY|UNIQUE|MATERIALIZED|RECURSIVE|CONSTRAINT|UNLOGGED)\s++)*+(?:{_DEFINED})"
    rf"|(?:ALTER|DROP)\s+(?:MATERIALIZED\s+)?(?:{_DEFINED})"
    r")\b(?!\s+EXTENSIONS\b)"
)
"""Statements that a task may need. Whatever else an engine has is rejected."""
_CODE = re.compile(
    rf"(?is){_BEFORE}CREATE\s++(?:OR\s++REPLACE\s++)?+(?:(?:TEMP|TEMPORARY|CONSTRAINT)\s++)*+(?:TRIGGER|FUNCTION|PROCEDURE|MACRO)\b"
)
_QUOTED = (sqlglot.TokenType.IDENTIFIER, sqlglot.TokenType.STRING)
_FIRST_WORDS = re.compile(rf"(?is){_BEFORE}(\w++)(?:\s++(\w++))?+")


@lru_cache(maxsize=4096)
def statements_of(script: str, dialect: str) -> tuple[str, ...]:
    """Returns the statements of a script, without the semicolons between them.

    A text that cannot be split is one statement, which the engine will refuse.
    """
    return tuple(part.strip() for part in _parts(script, dialect) if _says_something(part))


def _says_something(part: str) -> bool:
    return re.fullmatch(rf"(?s){_BEFORE}", part) is None


def _parts(script: str, dialect: str) -> Iterator[str]:
    """Yields what semicolons end, but for those in the body of a trigger or of a function with BEGIN ATOMIC."""
    try:
        tokens = sqlglot.tokenize(script, read=dialect)
    except SqlglotError:
        yield script
        return
    begin = depth = 0
    words: list[str] = []
    for token in tokens:
        word = "" if token.token_type in _QUOTED else token.text.upper()
        if depth:
            depth += (word == "CASE") - (word == "END")
        elif token.token_type == sqlglot.TokenType.SEMICOLON:
            yield script[begin : token.start]
            begin, words = token.end + 1, []
            continue
        elif (word == "ATOMIC" and words[-1:] == ["BEGIN"]) or (word == "BEGIN" and _is_trigger(words)):
            depth = 1
        words.append(word)
    yield script[begin:]


def _is_trigger(words: Sequence[str]) -> bool:
    return words[:1] == ["CREATE"] and "TRIGGER" in words[1:3]


def makes_code(script: str, dialect: str) -> bool:
    """Returns whether a script makes triggers, functions or procedures, whose meaning shows only when they run."""
    return any(_CODE.match(statement) for statement in statements_of(script, dialect))


def validate_script(script: str, schema: SqlSchema, dialect: str) -> Validation:
    """Checks a script without running it: whether its statements only read, change and define data.

    Names and syntax are left to the engine, since a script may define what it uses.
    """
    if len(script) > LONGEST or "\x00" in script:
        told = f"the SQL is longer than {LONGEST:,} characters or has a NUL character"
        return Validation(False, False, (ValidationError(SYNTAX, told),))
    statements = statements_of(script, dialect)
    if not statements:
        return Validation(False, False, (ValidationError(SYNTAX, "there is no statement"),))
    found = [problem for statement in statements for problem in _problems(statement, schema, dialect)]
    errors = tuple(ValidationError(SAFETY, problem) for problem in dict.fromkeys(found))
    return Validation(not errors, not errors, errors)


def _problems(statement: str, schema: SqlSchema, dialect: str) -> Iterator[str]:
    if _KIND.match(statement) is None:
        words = _FIRST_WORDS.match(statement)
        told = " ".join(word.upper() for word in words.groups() if word) if words else "it"
        yield f"{told} does more than read, change or define data"
        return
    try:
        parsed = parse_statements(statement, dialect)
    except (SqlSyntaxError, RecursionError):  # such as the body of a trigger; the engine has limits of its own
        return
    for tree in parsed:
        if not isinstance(tree, exp.Command):
            yield from beyond_changes(tree, schema, dialect)

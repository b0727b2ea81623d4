"""Checks whether a text is exactly one statement that only reads data, however it is written."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.tracks.sql.validation.safety_rules import (
    LOCKING_HINTS,
    STATEMENTS,
    TABLE_FUNCTIONS,
    function_problem,
    is_credential_column,
    is_sequence_value,
    qualified_problem,
    table_problem,
    unknown_problem,
)
from eval_pipeline_plugins.tracks.sql.validation.tautology import tautologies

_COMMENT = re.compile(r"/\*|--|#")
_NESTED_COMMENT = re.compile(r"/\*(?:(?!\*/).)*/\*", re.DOTALL)


def unsafe(sql: str, statements: Sequence[exp.Expr], dialect: str, schema: SqlSchema | None) -> Iterator[str]:
    """Yields the reasons why a text is not one read-only statement, one sentence each.

    Args:
        sql: the text.
        statements: the result of parsing it.
        dialect: sqlglot's name of the dialect.
        schema: its tables count as data, whatever their names are.
    """
    if len(statements) > 1:
        yield f"expected one statement, found {len(statements)}"
    yield from _hidden(sql, dialect)
    yield from _session_variables(sql, dialect)
    for statement in statements:
        if not isinstance(statement, (exp.Query, exp.Values, exp.Pivot, *STATEMENTS)):
            yield f"{_kind(statement)} is not a query"
        about = _About({common.alias.lower() for common in statement.find_all(exp.CTE)}, schema, dialect)
        for node in statement.walk():
            yield from _node(node, about)
        for condition in tautologies(statement):
            yield f"the filter {condition} holds for every row"
        yield from _smuggled_credentials(statement)


def beyond_changes(statement: exp.Expr, schema: SqlSchema, dialect: str) -> Iterator[str]:
    """Yields what a statement that may change data does beyond that: it reads files, the system, or credentials."""
    about = _About({common.alias.lower() for common in statement.find_all(exp.CTE)}, schema, dialect)
    for node in statement.walk():
        match node:
            case exp.Func() if (name := _name(node)) not in _OF_SCRIPTS:
                if (why := function_problem(name, known=True)) is not None:
                    yield f"the function {name} {why}"
            case exp.Table():
                yield from _table(node, about)


_OF_SCRIPTS = frozenset("nextval currval lastval setval last_insert_rowid changes total_changes".split())
"""Functions of sequences and of what a script has just changed."""


@dataclass(frozen=True, slots=True)
class _About:
    """The context of a statement: the names of its CTEs, the schema and the dialect."""

    own: set[str]
    schema: SqlSchema | None
    dialect: str


def _node(node: exp.Expr, about: _About) -> Iterator[str]:
    """Yields what a node does beyond reading data."""
    if isinstance(node, STATEMENTS):
        yield f"{_kind(node)} does more than read"
    if _reads_variable(node):
        yield "it reads a variable of the session"
    match node:
        case exp.Func():
            yield from _function(node, about.dialect)
        case exp.Table():
            yield from _table(node, about)
        case exp.Column() if node.table and is_sequence_value(node.name) and not _is_of_schema(node.name, about.schema):
            yield f"{node.table}.{node.name} draws from a sequence"
        case exp.Lateral() if isinstance(node.this, exp.Func):
            yield from _table_function(node.this)
        case exp.WithTableHint() if any(hint.name.upper() in LOCKING_HINTS for hint in node.expressions):
            yield "a hint locks the table"
        case exp.Dot() if isinstance(node.expression, exp.Func):
            yield from _qualified_function(node, node.expression, about.dialect)


def _qualified_function(dot: exp.Dot, function: exp.Func, dialect: str) -> Iterator[str]:
    """Yields problems with functions of packages and schemas (`dbms_pipe.receive_message`), which may do anything."""
    name = _name(function)
    qualifiers = [part.name for part in dot.this.find_all(exp.Identifier)] or [dot.this.sql()]
    known = not isinstance(function, exp.Anonymous | exp.AnonymousAggFunc)
    if (why := qualified_problem(qualifiers, name, dialect, known=known)) is not None:
        yield f"the function {name} of {'.'.join(reversed(qualifiers))} {why}"


def _is_of_schema(name: str, schema: SqlSchema | None) -> bool:
    return schema is not None and any(one.column(name) is not None for one in schema.relations)


def _session_variables(sql: str, dialect: str) -> Iterator[str]:
    """Yields uses of `@@x`, which DuckDB reads as the absolute value of x, but other engines as a variable."""
    if "@" not in sql:
        return
    try:
        tokens = sqlglot.tokenize(sql, read=dialect)
    except SqlglotError:
        return
    signs = [token.token_type is not TokenType.STRING and token.text.startswith("@") for token in tokens]
    if any(one and other for one, other in pairwise(signs)):
        yield "it reads a variable of the session"


def _reads_variable(node: exp.Expr) -> bool:
    """Returns whether a node reads a variable: `@x`, `@@x`, or `@@x` as PostgreSQL parses it (a text search).

    For DuckDB see `_session_variables`.
    """
    match node:
        case exp.Parameter():
            return not isinstance(node.this, exp.Literal)  # `$1` is a parameter
        case exp.MatchAgainst():
            return None in node.expressions
    return isinstance(node, exp.SessionParameter)


def _function(function: exp.Func, dialect: str) -> Iterator[str]:
    name = _name(function)
    unknown = isinstance(function, exp.Anonymous | exp.AnonymousAggFunc)
    why = function_problem(name, known=not unknown)
    if why is None and unknown and not isinstance(function.parent, exp.Table | exp.Lateral):
        why = unknown_problem(name, dialect)
    if why is not None:
        yield f"the function {name} {why}"


def _table(table: exp.Table, about: _About) -> Iterator[str]:
    if isinstance(table.this, exp.Func):
        yield from _table_function(table.this)
        return
    name = table.name
    if not table.db and (name.lower() in about.own or (about.schema is not None and _harmless_in(about.schema, name))):
        return
    alias = table.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.this is None:  # `FROM file('/etc/passwd')`
        yield f"the function {name.lower()} may not stand for a table"
    between = (
        [part.name for part in table.this.find_all(exp.Identifier)][:-1] if isinstance(table.this, exp.Dot) else []
    )
    qualifiers = tuple(part for part in (table.catalog, table.db, *between) if part)
    if (why := table_problem(qualifiers, name)) is not None:
        yield f"{'.'.join((*qualifiers, name))} {why}"


def _harmless_in(schema: SqlSchema, name: str) -> bool:
    """Returns whether the name is a table of the schema that may be read; tables with credentials may not."""
    return schema.relation(name) is not None and table_problem((), name) != "holds credentials"


def _table_function(function: exp.Func) -> Iterator[str]:
    name = _name(function)
    if name not in TABLE_FUNCTIONS and name.replace("_", "") not in _RUN_TOGETHER:
        yield f"the function {name} may not stand for a table"


_RUN_TOGETHER = {name.replace("_", "") for name in TABLE_FUNCTIONS}
"""Function names without underscores, as sqlglot writes some of them."""


def _name(function: exp.Func) -> str:
    unknown = isinstance(function, exp.Anonymous | exp.AnonymousAggFunc)
    return str(function.name if unknown else function.sql_name()).lower()


def _hidden(sql: str, dialect: str) -> Iterator[str]:
    """Yields comments that another engine would execute."""
    try:
        tokens = sqlglot.tokenize(sql, read=dialect)
    except SqlglotError:
        return
    ends = [-1, *(token.end for token in tokens)]
    starts = [*(token.start for token in tokens), len(sql)]
    for end, start in zip(ends, starts, strict=True):
        gap = sql[end + 1 : start]
        if not _COMMENT.search(gap):
            continue
        if "/*!" in gap or "/*M!" in gap:
            yield "a comment that MySQL executes"
        if _NESTED_COMMENT.search(gap):
            yield "a comment within a comment, which engines read differently"


def _smuggled_credentials(statement: exp.Expr) -> Iterator[str]:
    """Yields columns with passwords or keys that a later branch of a set operation or a scalar subquery adds."""
    for operation in statement.find_all(exp.SetOperation):
        right = operation.expression
        for column in right.find_all(exp.Column) if isinstance(right, exp.Expr) else ():
            if is_credential_column(column.name):
                yield f"a set operation adds the credentials in {column.name}"
    for inner in statement.find_all(exp.Subquery):
        if isinstance(inner.parent, exp.From | exp.Join) or not isinstance(inner.this, exp.Select):
            continue
        for projection in inner.this.expressions:
            for column in projection.find_all(exp.Column):
                if is_credential_column(column.name):
                    yield f"a subquery reads the credentials in {column.name}"


def _kind(node: exp.Expr) -> str:
    """Returns the kind of a statement in words."""
    if isinstance(node, exp.Command):
        return str(node.this).upper()
    return re.sub(r"(?<!^)(?=[A-Z][a-z])", " ", type(node).__name__).upper()

"""Whether a text is one single read-only statement that reads data and nothing else, whatever way it is spelled."""

import re
from collections.abc import Iterator, Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from eval_pipeline.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline.tracks.sql.validation.safety_rules import (
    LOCKING_HINTS,
    STATEMENTS,
    TABLE_FUNCTIONS,
    function_problem,
    is_credential_column,
    table_problem,
)
from eval_pipeline.tracks.sql.validation.tautology import tautologies

_COMMENT = re.compile(r"/\*|--|#")
_NESTED_COMMENT = re.compile(r"/\*(?:(?!\*/).)*/\*", re.DOTALL)
_SYSTEM_PACKAGES = re.compile(r"(?i)(dbms|utl|owa|apex|htp|ctxsys|sys|mdsys|xdb|master|msdb)(_\w+)?")


def unsafe(sql: str, statements: Sequence[exp.Expr], dialect: str, schema: SqlSchema | None) -> Iterator[str]:
    """Why a text is not one read-only statement, a sentence each.

    Args:
        sql: the text.
        statements: what it parses to.
        dialect: sqlglot's name of it.
        schema: tables that it has are data, whatever their names.
    """
    if len(statements) > 1:
        yield f"expected one statement, found {len(statements)}"
    yield from _hidden(sql, dialect)
    for statement in statements:
        if not isinstance(statement, (exp.Query, exp.Values, exp.Pivot, *STATEMENTS)):
            yield f"{_kind(statement)} is not a query"
        own = {common.alias.lower() for common in statement.find_all(exp.CTE)}
        for node in statement.walk():
            yield from _node(node, own, schema)
        for condition in tautologies(statement):
            yield f"the filter {condition} holds for every row"
        yield from _smuggled_credentials(statement)


def _node(node: exp.Expr, own: set[str], schema: SqlSchema | None) -> Iterator[str]:
    """What a node does beyond reading data; `own` are the names of CTEs."""
    if isinstance(node, STATEMENTS):
        yield f"{_kind(node)} does more than read"
    if _reads_variable(node):
        yield "it reads a variable of the session"
    match node:
        case exp.Func():
            yield from _function(node)
        case exp.Table():
            yield from _table(node, own, schema)
        case exp.Lateral() if isinstance(node.this, exp.Func):
            yield from _table_function(node.this)
        case exp.WithTableHint() if any(hint.name.upper() in LOCKING_HINTS for hint in node.expressions):
            yield "a hint locks the table"
        case exp.Dot() if isinstance(node.expression, exp.Func) and _SYSTEM_PACKAGES.fullmatch(node.this.name):
            # Packages have functions by the hundred: `dbms_pipe.receive_message`.
            yield f"the function {_name(node.expression)} of {node.this.name} does more than compute"


def _reads_variable(node: exp.Expr) -> bool:
    """`@x`, `@@x`, and the latter as DuckDB (the absolute value of one) and PostgreSQL (a text search) read it."""
    match node:
        case exp.Parameter():
            return not isinstance(node.this, exp.Literal)  # `$1` is a value to be filled in
        case exp.Abs():
            return isinstance(node.this, exp.Abs)
        case exp.MatchAgainst():
            return None in node.expressions
    return isinstance(node, exp.SessionParameter)


def _function(function: exp.Func) -> Iterator[str]:
    name = _name(function)
    unknown = isinstance(function, exp.Anonymous | exp.AnonymousAggFunc)
    if (why := function_problem(name, known=not unknown)) is not None:
        yield f"the function {name} {why}"


def _table(table: exp.Table, own: set[str], schema: SqlSchema | None) -> Iterator[str]:
    if isinstance(table.this, exp.Func):
        yield from _table_function(table.this)
        return
    name = table.name
    if not table.db and (name.lower() in own or (schema is not None and _harmless_in(schema, name))):
        return
    alias = table.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.this is None:  # `FROM file('/etc/passwd')`
        yield f"the function {name.lower()} may not stand for a table"
    if (why := table_problem((table.catalog, table.db), name)) is not None:
        yield f"{'.'.join(part for part in (table.catalog, table.db, name) if part)} {why}"


def _harmless_in(schema: SqlSchema, name: str) -> bool:
    """Whether it is one of the tables with data; one that holds credentials is still not to be read."""
    return schema.table(name) is not None and table_problem((), name) != "holds credentials"


def _table_function(function: exp.Func) -> Iterator[str]:
    name = _name(function)
    if name not in TABLE_FUNCTIONS and name.replace("_", "") not in _RUN_TOGETHER:
        yield f"the function {name} may not stand for a table"


_RUN_TOGETHER = {name.replace("_", "") for name in TABLE_FUNCTIONS}
"""sqlglot's names of some functions lack the underscores."""


def _name(function: exp.Func) -> str:
    unknown = isinstance(function, exp.Anonymous | exp.AnonymousAggFunc)
    return str(function.name if unknown else function.sql_name()).lower()


def _hidden(sql: str, dialect: str) -> Iterator[str]:
    """Comments that another reading of the same text would execute."""
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
    """Columns with passwords or keys that a further branch of a set operation, or a scalar subquery, brings in."""
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
    """The kind of a statement in words."""
    if isinstance(node, exp.Command):
        return str(node.this).upper()
    return re.sub(r"(?<!^)(?=[A-Z][a-z])", " ", type(node).__name__).upper()

"""The SQL validator: checks that a text parses, is one read-only statement and fits the schema (docs/sql.md).

It only examines the text. The code that runs SQL has its own, stricter limits.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import TOO_DEEP, SqlSyntaxError, shared_statements
from eval_pipeline_plugins.tracks.sql.cases.words import DEFAULT_DIALECT, SAFETY, SCHEMA, SYNTAX, Category
from eval_pipeline_plugins.tracks.sql.validation.safety import unsafe
from eval_pipeline_plugins.tracks.sql.validation.schema_check import misfits


@dataclass(frozen=True, slots=True)
class ValidationError:
    """One problem of a statement."""

    category: Category
    message: str


@dataclass(frozen=True, slots=True)
class Validation:
    """The result of the validator.

    Attributes:
        is_valid: whether it parses, fits the schema and is safe.
        safety_valid: whether it is one statement that only reads data; false for text that does not parse.
        errors: the problems; for text that does not parse or is unsafe, the schema is not checked.
    """

    is_valid: bool
    safety_valid: bool
    errors: tuple[ValidationError, ...]


def validate(
    sql: str, schema: SqlSchema | Mapping[str, Mapping[str, str]] | None = None, dialect: str = DEFAULT_DIALECT
) -> Validation:
    """Checks a statement without running it.

    Args:
        sql: what a model wrote.
        schema: schema of the database; may be a plain `{table: {column: type}}` mapping. None skips the check of names.
        dialect: sqlglot's name of the dialect in which it would run.
    """
    known = None if schema is None else SqlSchema.of(schema)
    try:
        statements = shared_statements(sql, dialect)
        found = list(dict.fromkeys(unsafe(sql, statements, dialect, known)))
        if found:
            return Validation(False, False, tuple(ValidationError(SAFETY, message) for message in found))
        lacking = dict.fromkeys(misfits(sql, statements[0], known, dialect)) if known is not None else ()
        return Validation(not lacking, True, tuple(ValidationError(SCHEMA, message) for message in lacking))
    except SqlSyntaxError as error:
        return Validation(False, False, (ValidationError(SYNTAX, str(error)),))
    except RecursionError:
        return Validation(False, False, (ValidationError(SYNTAX, TOO_DEEP),))

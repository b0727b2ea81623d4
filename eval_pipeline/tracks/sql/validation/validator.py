"""The SQL validator: does a text parse, is it one read-only statement, does it fit the schema (docs/sql.md).

It looks at the text alone. What runs SQL has its own, harder limits.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from eval_pipeline.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline.sql_equivalence.syntax.parsing import TOO_DEEP, SqlSyntaxError, shared_statements
from eval_pipeline.tracks.sql.validation.safety import unsafe
from eval_pipeline.tracks.sql.validation.schema_check import misfits
from eval_pipeline.tracks.sql.words import DEFAULT_DIALECT, SAFETY, SCHEMA, SYNTAX, Category


@dataclass(frozen=True, slots=True)
class ValidationError:
    """One thing that is wrong with a statement."""

    category: Category
    message: str


@dataclass(frozen=True, slots=True)
class Validation:
    """What the validator says.

    Attributes:
        is_valid: it parses, fits the schema and is safe.
        safety_valid: it is one read-only statement that reads data and nothing else; what does not parse is not.
        errors: what is wrong; of what does not parse, and of what is not safe, the schema is not looked at.
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
        schema: of the database; a plain `{table: {column: type}}` mapping will do. None leaves names unchecked.
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

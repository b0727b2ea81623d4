"""Runs a model's SQL: first the validator checks it, then it runs on the suite's database."""

import atexit
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import ClassVar

from eval_pipeline.core.ids import json_text, parse_json, text_hash
from eval_pipeline.core.model import ErrorClass, Failed, Json, Outcome, Ran
from eval_pipeline.sandbox.sql import SqlLimits, SqlRows, SqlRunner
from eval_pipeline.sql_equivalence.syntax.spelling import joined_operators
from eval_pipeline.tracks.base import Executor
from eval_pipeline.tracks.sql.cases.case_file import SqlCase, SqlContext
from eval_pipeline.tracks.sql.cases.source import Database
from eval_pipeline.tracks.sql.cases.words import SAFETY, SCHEMA, SYNTAX
from eval_pipeline.tracks.sql.effects.judging import outcome_of
from eval_pipeline.tracks.sql.effects.running import copied, script_of, validated_script
from eval_pipeline.tracks.sql.responses.artefact import SqlAnswer
from eval_pipeline.tracks.sql.validation.validator import Validation, validate

SHOWN_ROWS = 20
"""How many rows of an attempt's result are recorded."""
_SHOWN_CELL = 200
_CLASS_OF = {SYNTAX: ErrorClass.SYNTAX, SAFETY: ErrorClass.SANDBOX, SCHEMA: ErrorClass.COLUMN}


class SqlExecutor:
    """Runs queries in the child processes of one runner."""

    immediate: ClassVar[bool] = False

    def __init__(self, runner: SqlRunner) -> None:
        self._runner = runner

    async def execute(self, artefact: SqlAnswer, case: SqlCase) -> Outcome:
        """Returns the outcome of a query.

        If a refusal is expected, a block by the validator is the desired outcome. It then counts as an answer and not
        as an error, so that the model is not asked to write a query that passes.
        """
        context = case.context
        if artefact.sql is None:
            return Ran({"declined": artefact.reason})
        validation = validation_of(artefact.sql, context)
        if not validation.is_valid:
            if not context.should_pass:
                return Ran({"sql": artefact.sql, "blocked": [error.message for error in validation.errors]})
            first = validation.errors[0]
            return Failed(_CLASS_OF[first.category], f"{first.category}: {first.message}")
        if context.changes_data:
            script = script_of(artefact.sql, case.turns[0].gold.setup_sql, "", context.database)
            place, limits = copied(context.database), context.database.limits
            return outcome_of(artefact.sql, await self._runner.run_script(place, script, limits))
        path = context.database.path()
        if path is None:
            return Ran({"sql": artefact.sql, "columns": None, "rows": None, "row_count": None})
        found = await self._runner.run(path, runnable(artefact.sql, context.database), context.database.limits)
        return found if isinstance(found, Failed) else Ran(_shown(artefact.sql, found))


@asynccontextmanager
async def open_executor() -> AsyncIterator[Executor]:
    """Opens an executor with its own child processes."""
    async with SqlRunner(SqlLimits()) as runner:
        yield SqlExecutor(runner)


@lru_cache(maxsize=1)
def runner() -> SqlRunner:
    """Returns the runner whose child processes compare queries; they are kept until this process ends."""
    found = SqlRunner(SqlLimits())
    atexit.register(found.close)
    return found


@lru_cache(maxsize=4096)
def _validated(sql: str, database: Database) -> Validation:
    return validate(sql, database.schema, database.dialect)


def validated(sql: str, database: Database) -> Validation:
    """Returns the validator's result for a query to a database; results are cached."""
    return _validated(sql, database)


def validation_of(sql: str, context: SqlContext) -> Validation:
    """Returns the validator's result for an answer: a query, or a script where the task changes data."""
    return (validated_script if context.changes_data else validated)(sql, context.database)


@lru_cache(maxsize=4096)
def runnable(sql: str, database: Database) -> str:
    """Returns the query in the dialect of the engine that runs it, with the clock of the suite.

    SQLite, DuckDB and servers run their own; DuckDB runs all other dialects. A query that cannot be translated is left
    unchanged, so that the engine reports the problem.
    """
    dialect = database.dialect
    pinned = database.pinned(sql)
    if database.server is not None:
        return pinned
    if dialect in ("sqlite", "duckdb"):
        return joined_operators(pinned)
    from eval_pipeline.sql_equivalence.syntax.parsing import SqlSyntaxError, translated

    try:
        return translated(pinned, dialect, "duckdb")
    except SqlSyntaxError:
        return pinned


def result_fingerprint(found: SqlRows) -> str:
    """Returns a hash of a result's rows, whatever their order; digits that engines may round are left out."""
    return text_hash("\n".join(sorted(repr([_steady(cell) for cell in row]) for row in found.rows)))


def _steady(cell: object) -> object:
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return f"{cell:.9g}" if isinstance(cell, float) else cell


def shown_result(sql: str, found: SqlRows) -> Json:
    """Returns a result in the form that the record stores."""
    return _shown(sql, found)


def _shown(sql: str, found: SqlRows) -> Json:
    rows = kept_rows(found.rows)
    return {"sql": sql, "columns": list(found.columns), "rows": rows, "row_count": len(found.rows)}


def kept_rows(rows: Sequence[Sequence[object]]) -> list[list[Json]]:
    """Returns the first rows in the form that the record stores."""
    kept: list[list[Json]] = parse_json(json_text([[_cell(cell) for cell in row] for row in rows[:SHOWN_ROWS]]))
    return kept


def _cell(cell: object) -> Json:
    if cell is None or isinstance(cell, (bool, int, float)):
        return cell
    text = str(cell)
    return text if len(text) <= _SHOWN_CELL else text[: _SHOWN_CELL - 1] + "…"


def result_text(told: Json) -> str:
    """Returns the outcome of an attempt that ran as text: the query, or why there is none."""
    if "declined" in told:
        return f"(declined) {told['declined']}".strip()
    if "blocked" in told:
        return f"(blocked: {'; '.join(told['blocked'])}) {told['sql']}"
    return str(told["sql"])

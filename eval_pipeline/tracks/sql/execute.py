"""Running what a model wrote: the validator first, then the query on the suite's database."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import ClassVar

from eval_pipeline.core.ids import json_text, parse_json
from eval_pipeline.core.model import ErrorClass, Failed, Json, Outcome, Ran
from eval_pipeline.sandbox.sql import SqlLimits, SqlRows, SqlRunner
from eval_pipeline.tracks.base import Executor
from eval_pipeline.tracks.sql.artefact import SqlAnswer
from eval_pipeline.tracks.sql.cases.case_file import SqlCase
from eval_pipeline.tracks.sql.cases.source import Database
from eval_pipeline.tracks.sql.validation.validator import Validation, validate
from eval_pipeline.tracks.sql.words import SAFETY, SCHEMA, SYNTAX

SHOWN_ROWS = 20
"""Rows of a result that the record keeps of an attempt."""
_SHOWN_CELL = 200
_CLASS_OF = {SYNTAX: ErrorClass.SYNTAX, SAFETY: ErrorClass.SANDBOX, SCHEMA: ErrorClass.COLUMN}


class SqlExecutor:
    """Runs queries in the child processes of one runner."""

    immediate: ClassVar[bool] = False

    def __init__(self, runner: SqlRunner) -> None:
        self._runner = runner

    async def execute(self, artefact: SqlAnswer, case: SqlCase) -> Outcome:
        """What a query gives.

        Where a refusal is expected, what the validator blocks is the outcome that was wanted: an answer, not an error
        after which the model would be asked to write something that gets through.
        """
        context = case.context
        if artefact.sql is None:
            return Ran({"declined": artefact.reason})
        validation = validated(artefact.sql, context.database)
        if not validation.is_valid:
            if not context.should_pass:
                return Ran({"sql": artefact.sql, "blocked": [error.message for error in validation.errors]})
            first = validation.errors[0]
            return Failed(_CLASS_OF[first.category], f"{first.category}: {first.message}")
        path = context.database.path()
        if path is None:
            return Ran({"sql": artefact.sql, "columns": None, "rows": None, "row_count": None})
        found = await self._runner.run(path, runnable(artefact.sql, context.database.dialect))
        return found if isinstance(found, Failed) else Ran(_shown(artefact.sql, found))


@asynccontextmanager
async def open_executor() -> AsyncIterator[Executor]:
    """An executor with child processes of its own."""
    async with SqlRunner(SqlLimits()) as runner:
        yield SqlExecutor(runner)


@lru_cache(maxsize=4096)
def _validated(sql: str, database: Database) -> Validation:
    return validate(sql, database.schema, database.dialect)


def validated(sql: str, database: Database) -> Validation:
    """What the validator says of a query to a database; the same query is looked at once."""
    return _validated(sql, database)


@lru_cache(maxsize=4096)
def runnable(sql: str, dialect: str) -> str:
    """The query in the dialect of the engine that runs it: SQLite and DuckDB run their own, DuckDB all others.

    What cannot be translated stays as it is: the engine says what is wrong with it.
    """
    if dialect in ("sqlite", "duckdb"):
        return sql
    from eval_pipeline.sql_equivalence.syntax.parsing import SqlSyntaxError, translated

    try:
        return translated(sql, dialect, "duckdb")
    except SqlSyntaxError:
        return sql


def shown_result(sql: str, found: SqlRows) -> Json:
    """What the record keeps of a result."""
    return _shown(sql, found)


def _shown(sql: str, found: SqlRows) -> Json:
    rows = kept_rows(found.rows)
    return {"sql": sql, "columns": list(found.columns), "rows": rows, "row_count": len(found.rows)}


def kept_rows(rows: Sequence[Sequence[object]]) -> list[list[Json]]:
    """The first of some rows, as the record keeps them."""
    kept: list[list[Json]] = parse_json(json_text([[_cell(cell) for cell in row] for row in rows[:SHOWN_ROWS]]))
    return kept


def _cell(cell: object) -> Json:
    if cell is None or isinstance(cell, (bool, int, float)):
        return cell
    text = str(cell)
    return text if len(text) <= _SHOWN_CELL else text[: _SHOWN_CELL - 1] + "…"


def result_text(told: Json) -> str:
    """The outcome of an attempt that ran, as people read it: the query, or why there is none."""
    if "declined" in told:
        return f"(declined) {told['declined']}".strip()
    if "blocked" in told:
        return f"(blocked: {'; '.join(told['blocked'])}) {told['sql']}"
    return str(told["sql"])

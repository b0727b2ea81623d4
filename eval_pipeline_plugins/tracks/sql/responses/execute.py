"""Runs a model's SQL: first the validator checks it, then it runs on the suite's database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import ClassVar

from eval_pipeline.core.model import ErrorClass, Failed, Json, Outcome, Ran
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.runner import SqlRunner
from eval_pipeline.tracks.base import Executor
from eval_pipeline_plugins.tracks.sql import effects
from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlCase, SqlContext
from eval_pipeline_plugins.tracks.sql.cases.source import Database
from eval_pipeline_plugins.tracks.sql.cases.words import SAFETY, SCHEMA, SYNTAX
from eval_pipeline_plugins.tracks.sql.responses.artefact import SqlAnswer
from eval_pipeline_plugins.tracks.sql.responses.running import runnable, shown_result
from eval_pipeline_plugins.tracks.sql.validation.validator import Validation, validate

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
            script = effects.script_of(artefact.sql, case.turns[0].gold.setup_sql, "", context.database)
            place, limits = effects.copied(context.database), context.database.limits
            return effects.outcome_of(artefact.sql, await self._runner.run_script(place, script, limits))
        path = context.database.path()
        if path is None:
            return Ran({"sql": artefact.sql, "columns": None, "rows": None, "row_count": None})
        found = await self._runner.run(path, runnable(artefact.sql, context.database), context.database.limits)
        return found if isinstance(found, Failed) else Ran(shown_result(artefact.sql, found))


@asynccontextmanager
async def open_executor() -> AsyncIterator[Executor]:
    """Opens an executor with its own child processes."""
    async with SqlRunner(SqlLimits()) as runner:
        yield SqlExecutor(runner)


@lru_cache(maxsize=4096)
def validated(sql: str, database: Database) -> Validation:
    """Returns the validator's result for a query to a database; results are cached."""
    return validate(sql, database.schema, database.dialect)


def validation_of(sql: str, context: SqlContext) -> Validation:
    """Returns the validator's result for an answer: a query, or a script where the task changes data."""
    return (effects.validated_script if context.changes_data else validated)(sql, context.database)


def result_text(told: Json) -> str:
    """Returns the outcome of an attempt that ran as text: the query, or why there is none."""
    if "declined" in told:
        return f"(declined) {told['declined']}".strip()
    if "blocked" in told:
        return f"(blocked: {'; '.join(told['blocked'])}) {told['sql']}"
    return str(told["sql"])

"""Runs a model's code in the sandbox."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import ClassVar

from eval_pipeline.core.model import Failed, Json, Outcome, Ran
from eval_pipeline.sandbox.returned import outcomes as sandboxed
from eval_pipeline.tracks.base import Executor
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasCase, PandasContext
from eval_pipeline_plugins.tracks.pandas_code.cases.dialect import answer_code, answer_line
from eval_pipeline_plugins.tracks.pandas_code.cases.outputs import with_output
from eval_pipeline_plugins.tracks.pandas_code.cases.template import program_stub
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import Code
from eval_pipeline_plugins.tracks.pandas_code.results.reading import kept, result_text
from eval_pipeline_plugins.tracks.pandas_code.running.runner import sandbox


class PandasExecutor:
    """Runs code in the sandbox of this process."""

    immediate: ClassVar[bool] = False

    async def execute(self, artefact: Code, case: PandasCase) -> Outcome:
        """Returns the outcome of the code; a recorded answer is its own result."""
        context = case.context
        if artefact.answer is not None:
            return Ran({"result": {"kind": "value", "value": artefact.answer}})
        found = await asyncio.to_thread(run_answer, artefact.code, context)
        if isinstance(found, sandboxed.SnippetFailed):
            return Failed(found.error_class, error_text(found), found.tier)
        return Ran(kept(found.result), found.tier)


@asynccontextmanager
async def open_executor() -> AsyncIterator[Executor]:
    """Opens an executor; the sandbox behind it stays open afterwards."""
    yield PandasExecutor()


def run_answer(code: str, context: PandasContext) -> sandboxed.Outcome:
    """Returns the outcome of the code of an answer."""
    found = sandbox(context.layer).run(runnable(answer_code(code, context), context), context.paths)
    if isinstance(found, sandboxed.SnippetFailed):
        return replace(found, line=answer_line(found.line, context))
    return found


def runnable(code: str, context: PandasContext) -> str:
    """Returns the code as it is run; if tests decide, it need not set `result`."""
    whole = whole_code(code, context)
    return whole if context.sets_result else f"{whole}\nresult = None"


def whole_code(code: str, context: PandasContext) -> str:
    """Returns the program that an answer is, or is a part of."""
    if context.output is not None:
        return with_output(code, context.output)
    return code if context.template is None else program_stub(context.template, code)


def error_text(failed: sandboxed.SnippetFailed) -> str:
    """Returns Python's error message, with the line of the code."""
    kind = f"{failed.exception}: " if failed.exception else ""
    place = f" (line {failed.line})" if failed.line is not None else ""
    return f"{kind}{failed.message}{place}"


def answer_text(told: Json) -> str:
    """Returns the outcome of an attempt that ran, as text: its result."""
    return str(told["shown"]) if "shown" in told else result_text(told["result"])

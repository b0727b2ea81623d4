"""Serves the tools of a task to any agent, by MCP over standard input and output, and judges what it does."""

import asyncio
from collections.abc import Callable, Mapping
from time import perf_counter

from eval_pipeline.core import shown
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_text, parse_json
from eval_pipeline.core.installed.plugins import absent, install
from eval_pipeline.core.model import Case, ErrorClass, Json, ToolCall, ToolResult
from eval_pipeline.sandbox.world.errors import WorldError
from eval_pipeline.stages.attempts.agents.acting import Attempted, result_told
from eval_pipeline.stages.checks.ends import judged
from eval_pipeline.stages.scoring.metric_runner import MetricRunner, metrics_behind_primary
from eval_pipeline.suites.cases import read_cases
from eval_pipeline.suites.headers import SuiteSource
from eval_pipeline.tracks.abilities import executor_of
from eval_pipeline.tracks.base import Executor, Track
from eval_pipeline.tracks.capabilities import Acts, World

_OVER = "the task has ended"


class ServedTask:
    """A task that somebody works on.

    Attributes:
        row: the attempt, as a row of recorded answers; empty until it has ended.
        verdict: whether it is right, in words; likewise.
    """

    def __init__(
        self, track: Track, case: Case, executor: Executor, world: World, ended: "Callable[[ServedTask], None]"
    ) -> None:
        """Nothing has been done yet; `ended` is told when the task has ended, also if nobody can wait for a verdict."""
        assert isinstance(track, Acts)
        self._ended = ended
        self.row: dict[str, Json] = {}
        self.verdict = ""
        self._track, self._case, self._executor, self._world = track, case, executor, world
        self._done, self._one_at_a_time = Attempted(None, track.limits(case), ()), asyncio.Lock()

    async def call(self, name: str, arguments: Mapping[str, Json]) -> ToolResult:
        """Calls a tool; the one that answers ends the task, as reaching a limit does."""
        async with self._one_at_a_time:
            if not self.row and (reached := self._done.reached()) is not None:
                await self._end(*reached)
            if self.row:
                return ToolResult(f"{_OVER}: {self.row['response']['why'] or 'it is answered'}", ErrorClass.OTHER)
            began = perf_counter()
            try:
                result = await self._world.call(name, arguments, self._done.seconds_left)
            except WorldError as error:
                await self._end("harness", f"its world has ended: {error}")
                return ToolResult(_OVER, ErrorClass.OTHER)
            self._done.add_result(ToolCall("", name, arguments), result_told(result, perf_counter() - began))
            if result.ends:
                self._done.answer = result.answer
                await self._end("answered", "")
            return result

    async def leave(self) -> None:
        """Ends the task if it has not ended; nobody is there any more."""
        async with self._one_at_a_time:
            if not self.row:
                await self._end("gave_up", "it ended without calling `answer`")

    async def _end(self, ended: str, why: str) -> None:
        changed: Mapping[str, Json] = {}
        try:
            changed = await self._world.end_state()
        except WorldError as error:
            ended, why = "harness", f"its world has ended: {error}"
        text, turn = self._done.as_response(ended, why, changed).text, self._case.turns[0]
        self.row = {"case_id": self._case.id, "turn_index": turn.index, "response": parse_json(text)}
        told = "not judged"
        try:
            runner = MetricRunner(metrics_behind_primary(self._track))
            ((_, right),) = await judged(self._track, runner, self._executor, self._case, [(turn, text)])
            told = "right" if right else f"wrong{f' ({why})' if why else ''}"
        finally:
            self.verdict = f"{turn.id}: {told}, after {shown.counted(len(self._done.steps), 'call', 'calls')} of tools"
            self._ended(self)


def served_case(source: SuiteSource, case_id: str) -> tuple[Track, Case]:
    """Returns a case whose tools can be served, and its track.

    Raises:
        UsageError: there is no such case, it has no tools, or the package `mcp` is missing.
    """
    track = source.track()
    if not isinstance(track, Acts):
        raise UsageError(f"suite '{source.require().name}' has no tools to serve; its track is '{track.name}'")
    if absent(["mcp"]):
        raise UsageError(f"serving tools needs the package mcp; {install('mcp')}")
    found = {case.id: case for case in read_cases(source)}
    if case_id not in found:
        raise UsageError(f"suite '{source.require().name}' has no case '{case_id}'; it has: {', '.join(found)}")
    return track, found[case_id]


def serve(track: Track, case: Case, ended: Callable[[ServedTask], None]) -> None:
    """Serves a case's tools on this process's standard input and output, until that is closed.

    Args:
        track: the case's track.
        case: the case.
        ended: is told when the task has ended, before its last call is answered.
    """
    asyncio.run(_serve(track, case, ended))


async def _serve(track: Track, case: Case, ended: Callable[[ServedTask], None]) -> None:
    from mcp import types
    from mcp.server import Server, ServerRequestContext
    from mcp.server.stdio import stdio_server

    assert isinstance(track, Acts)
    turn = case.turns[0]
    asked = track.prompt(case, turn, (), track.prompt_versions[-1]).messages
    tools = [
        types.Tool(name=one.name, description=one.description, input_schema=dict(one.parameters))
        for one in track.tools(case)
    ]
    async with executor_of(track) as executor, track.world(executor, case, turn) as world:
        task = ServedTask(track, case, executor, world, ended)

        async def listed(_: ServerRequestContext, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
            return types.ListToolsResult(tools=tools)

        async def called(_: ServerRequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
            result = await task.call(params.name, params.arguments or {})
            shown = types.TextContent(type="text", text=result.text)
            return types.CallToolResult(content=[shown], is_error=result.error_class is not None)

        server = Server(
            "eval-pipeline",
            instructions="\n\n".join(message.text for message in asked),
            on_list_tools=listed,
            on_call_tool=called,
        )
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
        await task.leave()


def row_text(task: ServedTask) -> str:
    """Returns a task that has ended as a line of recorded answers."""
    return json_text(task.row) + "\n"

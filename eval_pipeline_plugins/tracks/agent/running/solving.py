"""The world of one attempt, with the user and the answer, and scripts that are followed in it."""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from math import isfinite
from typing import ClassVar

from eval_pipeline.core.model import ErrorClass as Class
from eval_pipeline.core.model import Failed, Json, Outcome, Ran, ToolCall, ToolResult
from eval_pipeline.core.system.programs import CRASHED, OwnProgram, ProgramEnded
from eval_pipeline.sandbox.world.errors import WorldError
from eval_pipeline.sandbox.world.tools import why_wrong
from eval_pipeline.sandbox.world.worlds import OpenWorld, WorldLimits, Worlds
from eval_pipeline.tracks.capabilities import Concluded, Serve
from eval_pipeline_plugins.tracks.agent.cases.case_file import AgentCase, AgentContext
from eval_pipeline_plugins.tracks.agent.trajectory import ANSWER, ASK, ActStep, Trajectory

_LAST_WORDS = 500
_NAMES_ERROR = re.compile(r"^[ \t]*[\w.]*(?:Error|Exception)\b.*", re.MULTILINE)
_TOO_MUCH = {"memory": "it took more memory than is allowed", "threads": "it started more processes than are allowed"}


def finished(ended: ProgramEnded, seconds: float) -> Concluded:
    """Returns how a program has ended that could take so many seconds.

    Its answer is what it wrote to the file of its answer, as JSON or text; else, if it ended with status 0, the last
    line of its standard output that is not empty: text, or an object of JSON with `answer`.
    """
    if ended.stopped == "wall":
        return Concluded(None, "seconds", f"it took more than the {seconds:g} s that are allowed")
    if ended.stopped is not None:
        return Concluded(None, CRASHED, _TOO_MUCH.get(ended.stopped, f"it was stopped: {ended.stopped}"))
    written, lines = (ended.answer or "").strip(), ended.output.split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if written:
        return Concluded(_call(_read(written)))
    if last and ended.status == 0:
        found = _read(last)
        return Concluded(_call(found if isinstance(found, dict) and ANSWER in found else last))
    told = [f"it ended with status {ended.status} and without an answer", *_complaints(ended.errors)]
    return Concluded(None, CRASHED if ended.status else "gave_up", ": ".join(told))


def _complaints(errors: str) -> Iterator[str]:
    """Yields the line that tells most of what went wrong, and then the last words if there are more."""
    lines, named = errors.split("\n"), _NAMES_ERROR.findall(errors)
    line = named[-1].strip() if named else next((line.strip() for line in lines if line.strip()), "")
    if line:
        yield line[:_LAST_WORDS]
    if (last := " ".join(errors.split())[-_LAST_WORDS:]) != line:
        yield last


def _read(text: str) -> Json:
    """Returns what a text is as JSON, or else the text."""
    try:
        found: Json = json.loads(text, parse_float=_number, parse_constant=_number)
    except (ValueError, RecursionError):
        return text
    return found


def _number(text: str) -> float:
    if not isfinite(found := float(text)):
        raise ValueError(f"{text} is no number of JSON")
    return found


def _call(found: Json) -> ToolCall:
    answer = found[ANSWER] if isinstance(found, dict) and ANSWER in found else found
    return ToolCall("", ANSWER, {ANSWER: answer})


class TaskWorld:
    """A world with the tools of a case; see `capabilities.World`."""

    def __init__(self, world: OpenWorld, context: AgentContext) -> None:
        """Nothing has been answered yet."""
        self._world, self._context, self._tools = world, context, context.all_tools()
        self._answers = 0

    async def call(self, name: str, arguments: Mapping[str, Json], seconds: float) -> ToolResult:
        """Calls a tool; see `capabilities.World.call`."""
        wrong = why_wrong(name, arguments, self._tools)
        if wrong is not None:
            return ToolResult(wrong, Class.VALUE, size=len(wrong.encode()))
        if name == ANSWER:
            return self._answer(arguments[ANSWER])
        if name == ASK:
            return _said(_reply(self._context, str(arguments["question"])))
        return await self._world.call(name, arguments, seconds, self._context.served.server_of.get(name))

    def _answer(self, answer: Json) -> ToolResult:
        at, self._answers = self._answers, self._answers + 1
        if at < len(self._context.then):
            return replace(_said(self._context.then[at]), is_reply=True)
        return ToolResult("", ends=True, answer=answer)

    async def run(self, program: OwnProgram, text: str, seconds: float, serve: Serve) -> Concluded:
        """Runs a program; see `capabilities.World.run`."""
        return finished(await self._world.run(program, text, seconds, serve), seconds)

    async def end_state(self) -> Mapping[str, Json]:
        """Returns what has changed, by path."""
        return {path: one.as_json() for path, one in (await self._world.end_state()).items()}


def _said(text: str) -> ToolResult:
    return ToolResult(text, size=len(text.encode()))


def _reply(context: AgentContext, question: str) -> str:
    """Returns what the user says: all facts that the question is about."""
    found = [fact.say for fact in context.facts or () if any(_names(question, word) for word in fact.about)]
    return " ".join(found) or context.otherwise


def _names(question: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", question, re.IGNORECASE) is not None


def opened_for(
    worlds: Worlds, context: AgentContext, program: OwnProgram | None = None
) -> AbstractAsyncContextManager[OpenWorld]:
    """Returns the world of a case, to be opened for one attempt."""
    world = context.world
    servers, hosted = context.served.servers, world.hosted()
    return worlds.open(world.folder(), world.files, None, servers, hosted, program, world.packages)


class AgentExecutor:
    """Follows scripts; what an agent has done already is its own result. It holds the worlds of attempts."""

    immediate: ClassVar[bool] = False

    def __init__(self, stack: AsyncExitStack) -> None:
        """Opens worlds when they are needed, and closes them with the stack."""
        self._stack, self._worlds = stack, dict[int, Worlds]()

    async def _of(self, told_bytes: int) -> Worlds:
        if told_bytes not in self._worlds:
            opened = Worlds(WorldLimits(told_bytes=told_bytes))
            self._worlds[told_bytes] = await self._stack.enter_async_context(opened)
        return self._worlds[told_bytes]

    @asynccontextmanager
    async def world(self, case: AgentCase, program: OwnProgram | None = None) -> AsyncIterator[TaskWorld]:
        """Opens a world as a case begins with."""
        context = case.context
        worlds = await self._of(context.limits.output_bytes)
        async with opened_for(worlds, context, program) as opened:
            yield TaskWorld(opened, context)

    async def execute(self, artefact: Trajectory, case: AgentCase) -> Outcome:
        """Returns what an attempt has answered and changed."""
        if not artefact.is_script:
            return Ran(result_of(artefact))
        try:
            async with self.world(case) as world:
                found = await followed(world, [step.calls[0] for step in artefact.steps], case.context)
        except WorldError as error:
            return Failed(Class.OTHER, f"its world has ended: {error}")
        return Ran(result_of(found))


@asynccontextmanager
async def open_executor() -> AsyncIterator[AgentExecutor]:
    """Opens an executor."""
    async with AsyncExitStack() as stack:
        yield AgentExecutor(stack)


async def followed(world: TaskWorld, calls: Sequence[ToolCall], context: AgentContext) -> Trajectory:
    """Makes the calls of a script and returns what came of them."""
    steps: list[ActStep] = []
    ended, why, answer = "gave_up", "it ended without calling `answer`", None
    for call in calls[: context.limits.steps]:
        told = await world.call(call.name, call.arguments, context.limits.seconds)
        error = None if told.error_class is None else told.error_class.value
        steps.append(ActStep("tool", told.text, (call,), error, told.rows, told.size, told.cut, made=told.made))
        if told.ends:
            ended, why, answer = "answered", "", told.answer
            break
    else:
        if len(calls) > context.limits.steps:
            ended, why = "steps", f"it had not answered after {context.limits.steps} calls of tools"
    return Trajectory(tuple(steps), answer, ended, why, await world.end_state())


def result_of(trajectory: Trajectory) -> dict[str, Json]:
    """Returns what an attempt has answered and changed, as the result of its execution."""
    return {
        "answers": trajectory.answers(),
        "ended": trajectory.ended,
        "why": trajectory.why,
        "end_state": None if trajectory.end_state is None else dict(trajectory.end_state),
    }

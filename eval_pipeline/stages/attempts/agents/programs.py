"""Attempts that somebody's own program makes: it acts by itself, and its calls of models pass through us.

What it asks is in the journal before it is told the answer, and so is the whole attempt in the end: after a kill, only
programs that had not ended run again, and these ask nothing twice as long as they ask the same.
"""

from dataclasses import replace
from socket import socket
from time import perf_counter
from typing import TYPE_CHECKING

from eval_pipeline.asking.answers import Answer, Answered
from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.spending.tally import stepped
from eval_pipeline.core.model import SENT_PROMPT, CallErrorKind, CallFailure, Case, Json, ToolCall, Turn
from eval_pipeline.core.system.programs import CRASHED, OwnProgram
from eval_pipeline.core.values import value
from eval_pipeline.providers.base import Call
from eval_pipeline.sandbox.world.errors import WorldError
from eval_pipeline.stages.attempts.agents.acting import WORLDS, Attempted, result_told
from eval_pipeline.tracks.base import Executor
from eval_pipeline.tracks.capabilities import Acts, Concluded, World

if TYPE_CHECKING:
    from eval_pipeline.asking.proxy.proxy import ModelProxy
    from eval_pipeline.asking.proxy.tools import CaseTools
    from eval_pipeline.asking.proxy.upstreams import Upstreams

_OTHERWISE = "changed", "a program that is run again asks its model otherwise than before"
_REPLIED = Concluded(None, "gave_up", "it ended with an answer to which the user has replied")


async def run_program(
    program: OwnProgram | None,
    upstreams: "Upstreams | None",
    track: Acts,
    executor: Executor,
    caller: Caller,
    call: Call,
    case: Case,
    turn: Turn,
) -> Answer:
    """Makes an attempt by running a program, if the journal does not have it.

    A world that ends before its time, as somebody killed its processes, is made again, and the program runs again.

    Args:
        program: the program; None if nobody may be asked.
        upstreams: where its calls go; likewise.
        track: of the case.
        executor: the track's, open.
        caller: whose journal, budget and limits hold.
        call: the attempt.
        case: the case.
        turn: its turn.

    Returns:
        A response with the trajectory; the failure if the model could not be asked, and the program had no answer.

    Raises:
        FatalCallError: no call of this run can succeed.
        UsageError: the program cannot be started.
        StoreError: the journal cannot be read or written.
    """
    known = await caller.recall(call)
    if known is not None:
        return known
    if program is None or upstreams is None:
        return CallFailure(CallErrorKind.BUDGET, "not asked: nobody may be asked")
    running = _ProgramAttempt(program, upstreams, track, executor, caller, call, case, turn)
    for left in reversed(range(WORLDS)):
        try:
            return await caller.keep(call, await running.make())
        except WorldError:
            if not left:
                raise
    raise AssertionError("the last one returns or raises")


@value
class _ProgramAttempt:
    """An attempt that is made by running a program; see `run_program`."""

    program: OwnProgram
    upstreams: "Upstreams"
    track: Acts
    executor: Executor
    caller: Caller
    call: Call
    case: Case
    turn: Turn

    async def make(self) -> Answer:
        """Runs the program in a world of its own."""
        from eval_pipeline.asking.proxy.proxy import ModelProxy
        from eval_pipeline.asking.proxy.steps import prompt_of, steps_of

        track, case, turn, limits = self.track, self.case, self.turn, self.track.limits(self.case)
        proxies = list[ModelProxy]()
        async with track.world(self.executor, case, turn, self.program) as world:
            tools = self._tools(world)

            def serve(listening: socket) -> ModelProxy:
                proxies.append(ModelProxy(self.upstreams, self.caller, self.call, limits, listening, tools))
                return proxies[0]

            end = await world.run(self.program, track.task_text(case, turn), limits.seconds, serve)
            (proxy,) = proxies
            for _ in range(proxy.paid.changed):
                self.caller.counters.note_retry(*_OTHERWISE)
            failure = _failure(proxy, has_answer=end.answer is not None or tools.ended)
            if failure is not None:
                return failure
            # What the program has done, by what its models were told and said, and by its calls of our tools.
            done = Attempted(self.caller.version, self.track.limits(self.case), ())
            done.responses = [one.response for one in proxy.calls]
            done.steps = [*steps_of(proxy.calls, tools.made, self.track.reserved)]
            end = await self._concluded(end, done, proxy, tools, world)
            changed = await world.end_state()
            if end.ended == "gave_up" and not (done.steps or changed):
                end = Concluded(None, CRASHED, f"{end.why}; it called and changed nothing")
            response = done.as_response(end.ended, end.why, changed)
            response = replace(response, metadata={**response.metadata, SENT_PROMPT: prompt_of(proxy.calls)})
        return Answered(response, from_journal=not proxy.changed)

    def _tools(self, world: World) -> "CaseTools":
        """Returns the case's own tools, which the program may call while it runs."""
        from eval_pipeline.asking.proxy.tools import CaseTools

        seconds = self.track.limits(self.case).seconds

        async def made(one: ToolCall) -> dict[str, Json]:
            began = perf_counter()
            return result_told(await world.call(one.name, one.arguments, seconds), perf_counter() - began)

        return CaseTools(self.track.tools(self.case), made)

    async def _concluded(
        self, end: Concluded, done: Attempted, proxy: "ModelProxy", tools: "CaseTools", world: World
    ) -> Concluded:
        """Returns how the attempt has ended, and adds the answer to it."""
        limits = self.track.limits(self.case)
        if sum(step["kind"] == "tool" for step in done.steps) > limits.steps:
            return Concluded(None, *stepped(limits.steps))
        if tools.ended:
            done.answer = tools.made[-1].step["answer"]
            return Concluded(tools.made[-1].call, "answered")
        if end.answer is None:
            return end if proxy.ended is None else Concluded(None, *proxy.ended)
        result = await world.call(end.answer.name, end.answer.arguments, limits.seconds)
        done.add_result(end.answer, result_told(result, 0.0))
        done.answer = result.answer
        return Concluded(end.answer, "answered") if result.ends else _REPLIED


def _failure(proxy: "ModelProxy", *, has_answer: bool) -> CallFailure | None:
    """Returns why an attempt is no result, if it is none. Raises what ends the run."""
    for error in (proxy.fatal, proxy.store_error):
        if error is not None:
            raise error
    failure = proxy.failure
    is_final = failure is not None and (failure.kind is CallErrorKind.BUDGET or not has_answer)
    return failure if is_final else None

"""Attempts that somebody's own program makes: it acts by itself, and its calls of models pass through us.

What it asks is in the journal before it is told the answer, and so is the whole attempt in the end: after a kill, only
programs that had not ended run again, and these ask nothing twice as long as they ask the same.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from socket import socket
from typing import TYPE_CHECKING

from eval_pipeline.asking.answers import Answer, Answered
from eval_pipeline.asking.calls import Caller
from eval_pipeline.core.model import CallErrorKind, CallFailure, Case, Json, Turn
from eval_pipeline.core.system.programs import OwnProgram
from eval_pipeline.providers.base import Call
from eval_pipeline.sandbox.world import WorldError
from eval_pipeline.stages.attempts.agents.acting import WORLDS, Attempted, result_told
from eval_pipeline.tracks.base import Executor
from eval_pipeline.tracks.capabilities import Acts, Concluded

if TYPE_CHECKING:
    from eval_pipeline.asking.proxy.proxy import ModelProxy
    from eval_pipeline.asking.proxy.upstreams import Upstreams

_REPLIED = Concluded(None, "gave_up", "it ended with its first answer, and the user has replied")


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
    for left in reversed(range(WORLDS)):
        try:
            return await caller.keep(
                call, await _attempt(program, upstreams, track, executor, caller, call, case, turn)
            )
        except WorldError:
            if not left:
                raise
    raise AssertionError("the last one returns or raises")


async def _attempt(
    program: OwnProgram,
    upstreams: "Upstreams",
    track: Acts,
    executor: Executor,
    caller: Caller,
    call: Call,
    case: Case,
    turn: Turn,
) -> Answer:
    """Runs a program in a world of its own."""
    from eval_pipeline.asking.proxy.proxy import ModelProxy

    limits, proxies = track.limits(case), list[ModelProxy]()

    @asynccontextmanager
    async def serve(listening: socket) -> AsyncIterator[None]:
        async with ModelProxy(upstreams, caller, call, limits, listening=listening) as proxy:
            proxies.append(proxy)
            yield

    async with track.world(executor, case, turn, program) as world:
        end = await world.run(program, track.task_text(case, turn), limits.seconds, serve)
        (proxy,) = proxies
        failure = _failure(proxy, end)
        if failure is not None:
            return failure
        done = _attempted(track, caller, case, proxy)
        if end.answer is not None:
            result = await world.call(end.answer.name, end.answer.arguments, limits.seconds)
            done.add_result(end.answer, result_told(result, 0.0))
            done.answer = result.answer
            end = Concluded(end.answer, "answered") if result.ends else _REPLIED
        elif proxy.ended is not None:
            end = Concluded(None, *proxy.ended)
        response = done.as_response(end.ended, end.why, await world.end_state())
    return Answered(response, from_journal=not proxy.changed)


def _failure(proxy: "ModelProxy", end: Concluded) -> CallFailure | None:
    """Returns why an attempt is no result, if it is none. Raises what ends the run."""
    for error in (proxy.fatal, proxy.store_error):
        if error is not None:
            raise error
    failure = proxy.failure
    is_final = failure is not None and (failure.kind is CallErrorKind.BUDGET or end.answer is None)
    return failure if is_final else None


def _attempted(track: Acts, caller: Caller, case: Case, proxy: "ModelProxy") -> Attempted:
    """Returns what a program has done, by what its models were told and said."""
    from eval_pipeline.asking.proxy.steps import steps_of

    done = Attempted(caller.version, track.limits(case), ())
    done.responses = [one.response for one in proxy.calls]
    done.steps = [_own(one, track.reserved) for one in steps_of(proxy.calls)]
    return done


def _own(step: Mapping[str, Json], reserved: tuple[str, ...]) -> Json:
    """Returns a step; a tool of the program's that is called as one of ours gets another name."""
    return {**step, "name": f"own {step['name']}"} if step.get("name") in reserved else dict(step)

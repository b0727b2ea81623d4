"""The loop of an agent: the model calls tools in a world until it has an answer, or a limit is reached.

Each call of the model and each result of a tool is in the journal before it is used. An attempt that is made again
after an interruption runs its tools again, because the world has to become what it was, but the model is told what it
was told before: it is asked nothing twice, even if a tool would now say something else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from eval_pipeline.asking.answers import Answer, Answered
from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.journal.codec import call_told
from eval_pipeline.asking.proxy.steps import model_step
from eval_pipeline.asking.spending.tally import CallTally, stepped
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import (
    CallFailure,
    Case,
    ErrorClass,
    Json,
    Message,
    Response,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
)
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Call
from eval_pipeline.sandbox.world.errors import WorldError
from eval_pipeline.tracks.base import Executor
from eval_pipeline.tracks.capabilities import ActLimits, Acts, World

_RESULT = "result"
_UNHEARD = "not taken: the user has replied to your answer before; read the reply first"
WORLDS = 4
"""How many worlds an attempt may have: one that has ended may have been killed, with nobody to blame."""


class Attempted:
    """What an attempt has done so far.

    Attributes:
        messages: the conversation.
        steps: calls of the model and of tools, as in a trajectory.
        responses: what the model has answered.
    """

    def __init__(
        self,
        version: ModelVersion | None,
        limits: ActLimits,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
    ) -> None:
        """Nothing yet; without a version no model is asked."""
        self.messages, self.steps = list(messages), list[Json]()
        self.responses: list[Response] = []
        self.answer: Json = None
        self._limits, self._seconds = limits, 0.0
        self._tools = [[one.name, one.description, one.parameters] for one in tools]
        self._tally = CallTally(version, limits)

    @property
    def seconds_left(self) -> float:
        """Seconds that tools may still take."""
        return self._limits.seconds - self._seconds

    def add_response(self, response: Response, *, from_journal: bool) -> None:
        """Adds an answer of the model. Raises a FatalCallError if dollars are limited and it has no price."""
        usd = self._tally.add(response, self._bytes)
        self.responses.append(response)
        self.messages.append(Message("assistant", response.text, response.calls, own=response.own))
        self.steps.append(model_step(response, usd, from_journal=from_journal))

    def add_result(self, call: ToolCall, told: Mapping[str, Json]) -> None:
        """Adds what a tool gave, as `result_told` has it."""
        self._seconds += told["seconds"]
        self.messages.append(Message("tool", told["result"], call_id=call.id))
        self.steps.append({"kind": "tool", **call_told(call), **told})

    def reached(self) -> tuple[str, str] | None:
        """Returns which limit is reached, if any, and a sentence on it; that of calls of the model comes last."""
        limits, tally = self._limits, self._tally
        if len(self.steps) - tally.calls >= limits.steps:
            return stepped(limits.steps)
        if (end := tally.spent()) is not None:
            return end
        if self.seconds_left <= 0:
            return "seconds", f"its tools took more than the {limits.seconds:g} s that are allowed"
        return tally.called()

    def _bytes(self, response: Response) -> tuple[int, int]:
        """Returns the bytes of what is asked and of what is said, at most one token each."""
        asked = [self._tools, *([one.text, *map(call_told, one.calls)] for one in self.messages)]
        said = [response.text, *map(call_told, response.calls)]
        return len(canonical_json(asked).encode()), len(canonical_json(said).encode())

    def as_response(self, ended: str, why: str, end_state: Mapping[str, Json]) -> Response:
        """Returns the attempt as one response, whose text is the trajectory."""
        trajectory = {
            "steps": self.steps,
            "answer": self.answer,
            "ended": ended,
            "why": why,
            "end_state": end_state,
        }
        known = [one.usd for one in self.responses]
        metadata = dict(self.responses[-1].metadata) if self.responses else {}
        return Response(
            canonical_json(trajectory),
            stop_reason=ended,
            usage=_sum([one.usage for one in self.responses]),
            latency_ms=sum(one.latency_ms or 0.0 for one in self.responses),
            first_byte_ms=self.responses[0].first_byte_ms if self.responses else None,
            retries=sum(one.retries for one in self.responses),
            asked_on=self.responses[0].asked_on if self.responses else "",
            usd=None if None in known else sum(one or 0.0 for one in known),
            metadata=metadata,
        )


async def act(track: Acts, executor: Executor, caller: Caller, call: Call, case: Case, turn: Turn) -> Answer:
    """Makes an attempt: asks the model and calls the tools of its prompt until it has answered or reached a limit.

    A world that ends before its time, as somebody killed its processes, is made again, and the attempt goes on in it.

    Returns:
        A response with the trajectory; the failure if the model could not be asked. What was done is in the journal, so
        that asking again goes on from there.

    Raises:
        FatalCallError: no call of this run can succeed.
        StoreError: the journal cannot be read or written.
    """
    paid = set[int]()
    for left in reversed(range(WORLDS)):
        try:
            answer, has_ended = await _acted(track, executor, caller, call, case, turn, paid)
        except WorldError:
            if not left:
                raise
            continue
        if not has_ended or not left:
            return answer
    raise AssertionError("the last one returns or raises")


async def _acted(
    track: Acts, executor: Executor, caller: Caller, call: Call, case: Case, turn: Turn, paid: set[int]
) -> tuple[Answer, bool]:
    """Makes an attempt in one world; returns also whether the world has ended before its time.

    `paid` has the numbers of the answers that were not in the journal when the attempt began.
    """
    limits, surroundings = track.limits(case), track.surroundings(case)
    done = Attempted(caller.version, limits, call.prompt.messages, call.prompt.tools)
    from_journal = True
    changed: Mapping[str, Json] = {}
    try:
        async with track.world(executor, case, turn) as world:
            while (end := done.reached()) is None:
                asked = replace(call, prompt=replace(call.prompt, messages=tuple(done.messages)))
                answer = await caller.ask(asked)
                if isinstance(answer, CallFailure):
                    return answer, False
                if not answer.from_journal:
                    paid.add(len(done.responses))
                response, is_known = answer.response, len(done.responses) not in paid
                from_journal = from_journal and is_known
                done.add_response(response, from_journal=is_known)
                if response.call_error is not None:
                    end = response.call_error.value, "the model stopped before it had answered"
                elif not response.calls:
                    end = "gave_up", "it ended without calling `answer`"
                else:
                    before = [surroundings, caller.key(asked)]
                    end = await _call_tools(world, caller, call, before, done, response.calls)
                if end is not None:
                    break
            changed = await world.end_state()
    except WorldError as error:
        if not done.responses:  # it never began: no fault of the model
            raise
        done.answer, end = None, ("harness", f"its world has ended: {error}")
    return Answered(done.as_response(*end, changed), from_journal=from_journal), end[0] == "harness"


async def _call_tools(
    world: World, caller: Caller, call: Call, before: Json, done: Attempted, calls: Sequence[ToolCall]
) -> tuple[str, str] | None:
    """Calls the tools in order; returns how the attempt has ended, if it has.

    Args:
        world: where they act.
        caller: keeps what they give.
        call: the question to which the model answered with the calls.
        before: what decides, beside the calls, what they give: the world, and all that was said and done before.
        done: what the attempt has done so far.
        calls: the calls of one answer.
    """
    replied = set[str]()
    for one in calls:
        if (end := done.reached()) is not None and end[0] != "model_calls":
            return end
        now: list[Mapping[str, Json]] = []

        async def make(one: ToolCall = one, now: list[Mapping[str, Json]] = now) -> Response:
            began = perf_counter()
            unheard = ToolResult(_UNHEARD, ErrorClass.VALUE, size=len(_UNHEARD))
            result = unheard if one.name in replied else await _called(world, one, done.seconds_left)
            if result.is_reply:
                replied.add(one.name)
            now.append(result_told(result, perf_counter() - began))
            return Response("", metadata={_RESULT: now[-1]})

        place = [before, len(done.steps), one.name, dict(one.arguments), one.malformed]
        kept = (await caller.once(place, call, make)).metadata[_RESULT]
        if not now:  # it was made before; the world has to become what it was then
            await make()
        again = {} if now[-1]["result"] == kept["result"] else {"differs_now": True}
        done.add_result(one, {**kept, **again})
        if kept["ends"]:
            done.answer = kept["answer"]
            return "answered", ""
    return None


async def _called(world: World, call: ToolCall, seconds: float) -> ToolResult:
    if call.malformed:
        return ToolResult(f"the arguments are no JSON object: {call.malformed[:200]}", ErrorClass.SYNTAX)
    return await world.call(call.name, call.arguments, seconds)


def result_told(result: ToolResult, seconds: float) -> dict[str, Any]:
    """Returns a tool's result as it is kept, and what of it is a step of a trajectory."""
    return {
        "result": result.text,
        "error_class": None if result.error_class is None else result.error_class.value,
        "rows": result.rows,
        "bytes": result.size,
        "cut": result.cut,
        "ends": result.ends,
        "answer": result.answer,
        "seconds": round(seconds, 4),
        **({"made": [dict(one) for one in result.made]} if result.made else {}),
    }


def _sum(usages: Sequence[Usage]) -> Usage:
    """Returns the sum of token counts; unknown if one is unknown."""

    def total(counts: Sequence[int | None]) -> int | None:
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) and counts else None

    return Usage(
        total([one.input_tokens for one in usages]),
        total([one.output_tokens for one in usages]),
        sum(one.cache_read_tokens for one in usages),
        sum(one.cache_write_tokens for one in usages),
    )

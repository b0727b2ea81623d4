"""The proxy of one attempt: answers an agent's calls from the journal, or passes them on within the limits."""

import asyncio
import re
import socket
from collections import defaultdict
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from eval_pipeline.asking.answers import Answered, utc_today
from eval_pipeline.asking.budgets import Amount
from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.proxy.calls import ProxiedCall
from eval_pipeline.asking.proxy.gate import CallGate
from eval_pipeline.asking.proxy.paid_before import PaidBefore
from eval_pipeline.asking.proxy.relay import REPLY, Outgoing, Relay, Reply
from eval_pipeline.asking.proxy.requests import AgentRequest, UnsuitableError, most_of, priced_for, read_request
from eval_pipeline.asking.proxy.tools import CaseTools
from eval_pipeline.asking.proxy.upstreams import Upstreams
from eval_pipeline.asking.proxy.wires import WIRES, Wire
from eval_pipeline.asking.spending.tally import CallLimits
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import CallErrorKind, CallFailure, Json, Response
from eval_pipeline.core.system.programs import TOOLS_PATH
from eval_pipeline.providers.base import Call, FatalCallError
from eval_pipeline.providers.prices import is_free

if TYPE_CHECKING:
    from eval_pipeline.asking.proxy.serving import Received

_BETAS = ("anthropic-version", "anthropic-beta", "openai-beta")
_PLAIN = re.compile(r"[A-Za-z0-9 ,;=&._-]{0,2000}")
_OF_OTHERS = frozenset({CallErrorKind.BAD_REQUEST, CallErrorKind.REFUSED})
"""Failures that are the request's own fault."""
_MODELS = "/v1/models"
_JSON = {"content-type": "application/json"}


class ModelProxy:
    """Serves an agent's calls on a socket within `async with`; keys stay outside.

    An equal request made again is another call: each has a number among its like, so that the same program, run again,
    is told what it was told before, in the same order. A call that failed, or whose agent hung up before its end, gives
    its number back: whoever repeats it hears what was paid for.

    Attributes:
        ended: the limit of the case that refused a call first, and a sentence on it.
        failure: why the attempt is no result: the budget of the run refused a call, or the last one came to nothing,
            by no fault of the agent.
        fatal: why no call of the run can succeed.
        store_error: why the journal cannot be used.
        errors: calls that came to nothing.
        changed: calls that were not in the journal.
        paid: what runs before have paid for.
    """

    def __init__(
        self,
        upstreams: Upstreams,
        caller: Caller,
        call: Call,
        limits: CallLimits,
        listening: socket.socket,
        tools: CaseTools | None = None,
    ) -> None:
        """Serves nothing yet.

        Args:
            upstreams: open endpoints.
            caller: has the journal, the budget and the limits of the run.
            call: the attempt.
            limits: those of the case.
            listening: a listening socket, which is closed in the end.
            tools: those of the case, if it has any; their calls cost nothing and are not kept.
        """
        self.failure: CallFailure | None = None
        self.fatal: FatalCallError | None = None
        self.store_error: StoreError | None = None
        self.errors = self.changed = 0
        self._upstreams, self._caller, self._call, self._limits = upstreams, caller, call, limits
        self._listening, self._tools = listening, tools
        self.paid = PaidBefore(caller, call)
        self._gate = CallGate(caller.version, limits)
        self._answered: dict[int, ProxiedCall] = {}
        self._begun = 0
        self._numbers = defaultdict[str, set[int]](set)
        self._tasks = set[asyncio.Task[None]]()
        self._fault: Exception | None = None

    @property
    def calls(self) -> list[ProxiedCall]:
        """The calls that were answered, in the order in which they were made."""
        return [self._answered[place] for place in sorted(self._answered)]

    @property
    def ended(self) -> tuple[str, str] | None:
        """See the class."""
        return self._gate.ended

    async def __aenter__(self) -> Self:
        """Begins to serve. Raises a StoreError if the journal cannot be read."""
        from eval_pipeline.asking.proxy.serving import SocketHost

        await self.paid.open()
        self._host = SocketHost(self._respond, _refusal)
        await self._host.open(self._listening)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Serves no more, and waits for calls on their way, which are paid for. Raises what nobody expected."""
        if self._tools is not None:
            self._tools.close()
        try:
            await self._host.close()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            for task in self._tasks:
                task.cancel()
        if self._fault is not None and error is None:
            raise self._fault

    def _respond(self, received: "Received") -> Outgoing:
        back = Outgoing()
        # A task of its own: an answer is paid for, also if the agent hangs up or reads it slowly.
        task = asyncio.get_running_loop().create_task(self._answer(received, back))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return back

    async def _answer(self, received: "Received", back: Outgoing) -> None:
        path = received.path
        try:
            if (told := await self._own(received)) is not None:
                back.whole(told)
                return
            wire = WIRES.get(path) if received.method == "POST" else None
            if wire is None:
                _refuse(back, path, 404, f"{received.method} {path[:80]} is not served here")
                return
            betas = {name: received.headers[name] for name in _BETAS if name in received.headers}
            if not all(map(_PLAIN.fullmatch, (received.query, *betas.values()))):
                raise UnsuitableError("the request has unusual characters in its address or headers")
            query = f"?{received.query}" if received.query else ""
            request = read_request(wire, path + query, received.body, betas)
            why = self._upstreams.why_not(wire.upstream) or self._why_unpriced(request)
            if why is not None:
                raise UnsuitableError(why)
            await self._admit(request, back)
        except UnsuitableError as error:
            _refuse(back, path, 400, str(error))
        except StoreError as error:
            self.store_error = error
            _refuse(back, path, 400, "the evaluation cannot keep answers")
        except asyncio.CancelledError:
            _refuse(back, path, 400, "the evaluation ends")
            raise
        except Exception as error:  # the agent is told something; the block raises it
            self._fault = self._fault or error
            _refuse(back, path, 500, "the evaluation has failed")
        finally:
            back.end()

    async def _own(self, received: "Received") -> Reply | None:
        """Returns what is answered here, without a model; None if a request is something else."""
        path = received.path
        if received.method == "GET" and (path == _MODELS or path.startswith(f"{_MODELS}/")):
            return _models(path.removeprefix(_MODELS)[1:], self._caller.version.model)
        if self._tools is not None and path.startswith(TOOLS_PATH):
            return await self._tools.answer(received, self._gate.steps, lambda: self._begun)
        return None

    def _why_unpriced(self, request: AgentRequest) -> str | None:
        """Returns why a call cannot be kept within a limit in dollars; None if it can."""
        if not self._caller.needs_prices and self._limits.usd is None:
            return None
        priced = priced_for(self._caller.version, request.model)
        if is_free(priced) or most_of(request, priced, _today())[1] is not None:
            return None
        told = f"what calls of '{request.model[:80]}' cost is unknown, and dollars are limited"
        self.fatal = FatalCallError(f"{told}: give the model version a `price`, or leave the limit out")
        return told

    async def _admit(self, request: AgentRequest, back: Outgoing) -> None:
        """Answers a request as soon as the limits of the case allow it."""
        if request.wire.counts:
            await self._relay(request, back, Amount(0, 0.0))
            return
        most = Amount(*most_of(request, priced_for(self._caller.version, request.model), _today()))
        reached = await self._gate.enter(most)
        if reached is not None:
            _refuse(back, request.path, 400, f"no further call is allowed: {reached[1]}")
            return
        place, answered = self._begun, None
        self._begun += 1
        try:
            answered = await self._relay(request, back, most)
            if answered is not None:
                self._answered[place] = answered
        finally:
            await self._gate.leave(most, answered)

    async def _relay(self, request: AgentRequest, back: Outgoing, most: Amount) -> ProxiedCall | None:
        number = self._take(request.key, back)
        priced = priced_for(self._caller.version, request.model)
        relay = Relay(self._upstreams, request, number, priced, _today(), back)
        answered: Response | None = None
        try:
            call = replace(self._call, most=(most.tokens, most.usd))
            answer = await self._caller.through(relay).ask(call)
            if isinstance(answer, Answered):
                answered = answer.response
        except FatalCallError as error:
            self.fatal = error
            _tell_failure(back, request, relay, 502, str(error))
            return None
        finally:
            if answered is None:
                self._numbers[request.key].discard(number)
        if not isinstance(answer, Answered):
            self._failed(answer, request, relay, back)
            return None
        if self.failure is not None and self.failure.kind is not CallErrorKind.BUDGET:
            self.failure = None
        self.changed += not answer.from_journal
        metadata = {name: told for name, told in answer.response.metadata.items() if name != REPLY}
        kept = replace(answer.response, metadata=metadata)
        told = ProxiedCall(request.wire.name, request.body, kept, answer.from_journal)
        await self.paid.note([request.key, number], from_journal=answer.from_journal)  # who has heard all may hang up
        self._gate.steps.ask(told)
        reply = relay.reply or Reply.kept(answer.response)
        back.whole(reply) if not back.begun else back.add(reply.body[relay.passed :])
        return told

    def _take(self, key: str, back: Outgoing) -> int:
        """Takes the lowest number that no equal request has, and gives it back if the agent hangs up."""
        taken = self._numbers[key]
        number = next(number for number in range(len(taken) + 1) if number not in taken)
        taken.add(number)
        back.hung_up = lambda: taken.discard(number)
        return number

    def _failed(self, failure: CallFailure, request: AgentRequest, relay: Relay, back: Outgoing) -> None:
        if failure.kind is CallErrorKind.BUDGET:
            self.failure = failure
            _refuse(back, request.path, 400, failure.message)
            return
        self.errors += 1
        if failure.kind not in _OF_OTHERS and (self.failure is None or self.failure.kind is not CallErrorKind.BUDGET):
            self.failure = failure
        _tell_failure(back, request, relay, 504 if failure.kind is CallErrorKind.TIMEOUT else 502, failure.message)


def _tell_failure(back: Outgoing, request: AgentRequest, relay: Relay, status: int, message: str) -> None:
    """Passes on how an upstream failed, in its own words if it had any."""
    if back.begun:
        if not relay.has_told:
            back.add(request.wire.error_event(message))
        return
    back.whole(relay.failed or Reply(status, _JSON, request.wire.error(status, message)))


def _refuse(back: Outgoing, path: str, status: int, message: str) -> None:
    back.whole(Reply(status, {**_JSON, "x-should-retry": "false"}, _refusal(path, status, message)))


def _refusal(path: str, status: int, message: str) -> bytes:
    wire: Wire = WIRES.get(path.partition("?")[0], WIRES["/v1/chat/completions"])
    return wire.error(status, message)


def _models(asked: str, known: str) -> Reply:
    """Returns a list with the model of the evaluation, or the one asked about, in a form that suits both APIs."""
    name = asked[:200] or known
    model: dict[str, Json] = {
        "id": name,
        "object": "model",
        "type": "model",
        "display_name": name,
        "owned_by": "evaluation",
    }
    model |= {"created": 0, "created_at": "1970-01-01T00:00:00Z"}
    told = model if asked else {"object": "list", "data": [model], "has_more": False, "first_id": name, "last_id": name}
    return Reply(200, _JSON, json_text(told).encode())


def _today() -> str:
    return utc_today().isoformat()

"""One request of an agent on its way: sent on, passed back as it comes, and read."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Self

from eval_pipeline.asking.proxy.events import Events
from eval_pipeline.asking.proxy.requests import AgentRequest
from eval_pipeline.asking.proxy.upstreams import Upstreams
from eval_pipeline.asking.proxy.wires import Heard
from eval_pipeline.core.model import CallErrorKind, Json, Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.values import value
from eval_pipeline.providers.base import Call, CallError, FatalCallError
from eval_pipeline.providers.http.errors import may_be_events
from eval_pipeline.providers.prices import cost_usd
from eval_pipeline.providers.standins.inprocess import InProcess

if TYPE_CHECKING:
    import httpx2

MOST_BYTES = 64 * 1024 * 1024
"""Longest answer that is passed on."""
REPLY = "reply"
"""Key in the metadata of a response: the reply as it came."""
_EVENTS = "text/event-stream"
_PASSED = ("content-type", "retry-after", "retry-after-ms", "x-should-retry", "request-id", "x-request-id")


@value
class Reply:
    """A reply, or its beginning: status, headers, and the body so far."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    def as_json(self) -> Json:
        """Returns it as it is kept; bytes that are no UTF-8 become lone surrogates."""
        return {"headers": dict(self.headers), "body": self.body.decode(errors="surrogateescape")}

    @classmethod
    def kept(cls, response: Response) -> Self:
        """Returns the reply that a response was read from."""
        told = response.metadata[REPLY]
        return cls(200, told["headers"], told["body"].encode(errors="surrogateescape"))


class Outgoing:
    """What goes back to the agent: it is read at the agent's pace, and waits for nobody to be added.

    Attributes:
        begun: whether anything was added.
        hung_up: called if the agent hangs up before the end.
    """

    def __init__(self) -> None:
        """Nothing yet."""
        self.begun = False
        self.hung_up: Callable[[], None] = lambda: None
        self._parts: asyncio.Queue[Reply | bytes | None] = asyncio.Queue()

    def begin(self, reply: Reply) -> None:
        """Adds status and headers, and the body as far as it is known."""
        self.begun = True
        self._parts.put_nowait(reply)

    def add(self, part: bytes) -> None:
        """Adds a part of the body."""
        self._parts.put_nowait(part)

    def whole(self, reply: Reply) -> None:
        """Adds a reply that is all, unless another one has begun."""
        if not self.begun:
            self.begin(reply)

    def end(self) -> None:
        """Says that this is all."""
        self._parts.put_nowait(None)

    async def parts(self) -> AsyncIterator[Reply | bytes]:
        """Yields what was added, as it comes."""
        while (part := await self._parts.get()) is not None:
            yield part


class Relay(InProcess):
    """The provider behind one request of an agent: it sends the request as it is.

    Attributes:
        failed: the reply of an upstream that failed; None if there was none.
        reply: the whole reply of one that did not.
        passed: bytes of it that were passed on as they came.
        has_told: whether what was passed on ends with the upstream's own word of a failure.
    """

    can_judge: ClassVar[bool] = False

    def __init__(
        self, upstreams: Upstreams, request: AgentRequest, number: int, priced: ModelVersion, day: str, back: Outgoing
    ) -> None:
        """Sends nothing yet.

        Args:
            upstreams: those who are asked.
            request: what they are asked.
            number: how many equal requests the agent has made before.
            priced: whose price applies.
            day: ISO date of the request.
            back: takes the events of a streamed answer, all but those that end it: these are to be passed on when the
                answer is kept.
        """
        self.failed: Reply | None = None
        self.reply: Reply | None = None
        self.passed, self.has_told = 0, False
        self._upstreams, self._request, self._number = upstreams, request, number
        self._priced, self._day, self._back = priced, day, back

    def request(self, call: Call) -> Json:
        """Returns what the answer is kept under; the attempt is part of it."""
        place = {"suite": call.suite, "turn": call.turn_id, "number": call.number}
        elsewhere = self._upstreams.elsewhere(self._request.wire.upstream)
        return {"proxied": self._request.key, "occurrence": self._number, **place, **elsewhere}

    async def generate(self, call: Call) -> Response:
        """Sends the request. Raises CallError or FatalCallError."""
        began = perf_counter()
        heard, wire = self._request.wire.heard(), self._request.wire
        async with self._upstreams.asked(self._request) as answer:
            reply = Reply(answer.status_code, self._passed_headers(answer))
            if answer.status_code != 200:
                body = self._upstreams.redacted(await _all(answer))
                self.failed = replace(reply, body=body)
                raise wire.meaning(answer.status_code, _decoded(body), answer.headers, self._request.model)
            if self._request.streams and may_be_events(answer.headers):
                headers = {**reply.headers, "content-type": reply.headers.get("content-type", _EVENTS)}
                reply = await self._passed_on(answer, replace(reply, headers=headers), heard)
            else:
                reply = replace(reply, body=self._upstreams.redacted(await _all(answer)))
                heard.whole(_decoded(reply.body))
        self.reply, response = reply, heard.response()
        usd = cost_usd(self._priced, response.usage, self._day) if response.usd is None else response.usd
        latency = round((perf_counter() - began) * 1000, 1)
        metadata = {**response.metadata, REPLY: reply.as_json()}
        return replace(response, latency_ms=latency, usd=usd, asked_on=self._day, metadata=metadata)

    def _passed_headers(self, answer: "httpx2.Response") -> dict[str, str]:
        told = {name: answer.headers[name].encode("ascii", "replace") for name in _PASSED if name in answer.headers}
        return {name: self._upstreams.redacted(one).decode() for name, one in told.items()}

    async def _passed_on(self, answer: "httpx2.Response", reply: Reply, heard: Heard) -> Reply:
        """Passes events on as they come, up to the one that ends the answer; returns all of them."""
        self._back.begin(reply)
        events, whole, size, ends = Events(), bytearray(), 0, False
        async for piece in answer.aiter_bytes():
            size += len(piece)
            _check_size(size)
            for event in map(self._upstreams.redacted, events.add(piece)):
                whole += event
                ends = self._heard(heard, event) or ends
                if not ends:
                    self._back.add(event)
                    self.passed += len(event)
        if rest := self._upstreams.redacted(events.rest()):
            whole += rest
            self._heard(heard, rest)
        return replace(reply, body=bytes(whole))

    def _heard(self, heard: Heard, event: bytes) -> bool:
        """Adds an event to the answer; returns whether it ends. An event that tells a failure is passed on, too."""
        try:
            return heard.add(event)
        except (CallError, FatalCallError):
            self._back.add(event)
            self.has_told = True
            raise


async def _all(answer: "httpx2.Response") -> bytes:
    whole = bytearray()
    async for piece in answer.aiter_bytes():
        whole += piece
        _check_size(len(whole))
    return bytes(whole)


def _check_size(size: int) -> None:
    if size > MOST_BYTES:
        told = f"the upstream sent more than {MOST_BYTES // 2**20} MiB"
        raise CallError(CallErrorKind.BAD_RESPONSE, told)


def _decoded(body: bytes) -> Json:
    """Returns a body as decoded JSON; its text if it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode(errors="replace")[:2000]

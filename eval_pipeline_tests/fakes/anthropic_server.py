"""A fake of the Anthropic API on a real socket: messages (whole and streamed), batches, token counts, and faults.

with AnthropicServer({"How much?": "42"}, faults=[RATE_LIMITED]) as server: … server.url, server.log

GET /_log tells other processes what it was asked. It checks requests as the API does, then plays the script of faults
(`anthropic_faults`), then answers.

python -m eval_pipeline_tests.fakes.anthropic_server LATENCY ANSWER RATE says {"url": …, "key": …} and serves until its
standard input ends: for benchmarks. RATE is the share of requests that it refuses (429 and 529).
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import Any

from eval_pipeline_tests.fakes import anthropic_faults as faulty
from eval_pipeline_tests.fakes.anthropic_batches import Entry, FakeBatch, FakeModel, page_of
from eval_pipeline_tests.fakes.anthropic_faults import Asked, Fault, Faults
from eval_pipeline_tests.fakes.anthropic_messages import (
    Answers,
    InvalidRequestError,
    PrefixCache,
    UnknownModelError,
    body_hash,
    check_batch,
    check_message,
    input_tokens,
    question,
    stream_events,
)
from eval_pipeline_tests.fakes.http_socket import Connection, Request, SocketServer

KEY = "sk-ant-fake-4f1d2c3b5a697887"
ANSWERED = "answered"
_JSON = "application/json"


@dataclass(slots=True)
class Logged:
    """One request as the server saw it; `outcome`: `answered`, the fault's name, or the refusal's status."""

    number: int
    operation: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any = None
    hash: str = ""
    question: str = ""
    stream: bool = False
    in_flight: int = 0
    at: float = 0.0
    took: float = 0.0
    outcome: str = ""
    usage: dict[str, int] = field(default_factory=dict)


class AnthropicServer(SocketServer):
    """The fake; `log` has every request in order of arrival, `model` the answers it counted and the batches."""

    def __init__(
        self,
        answers: Answers = lambda body: "answer",
        *,
        key: str = KEY,
        models: frozenset[str] | None = None,
        faults: Faults = None,
        latency_s: float = 0.0,
        first_byte_s: float | None = None,
        cache_minimum: int = 1024,
        batch_polls: int = 1,
        batch_entry: Entry = lambda custom_id, body: None,
        keep_bodies: bool = True,
        port: int = 0,
    ) -> None:
        """Nothing listens yet.

        Args:
            models: those that exist; None: all.
            latency_s: from a message's request to the end of its answer.
            first_byte_s: from the request to the first event of a stream; `latency_s` by default.
            cache_minimum: tokens below which a prefix is not cached.
            batch_polls: looks at a batch until it ends; 0: it has ended when it is taken.
            keep_bodies: the log holds bodies and headers; without, long runs take less memory.
        """
        super().__init__(port)
        self.log: list[Logged] = []
        self.model = FakeModel(answers, PrefixCache(cache_minimum), batch_polls, batch_entry)
        self._key = key
        self._models = models
        self._fault = faulty.as_function(faults)
        self._latency_s = latency_s
        self._first_byte_s = latency_s if first_byte_s is None else first_byte_s
        self._keep_bodies = keep_bodies
        self._asked: Counter[str] = Counter()
        self._in_flight: Counter[str] = Counter()
        self._started = monotonic()

    def requests(self, operation: str = faulty.MESSAGES) -> list[Logged]:
        """The log of one operation."""
        return [entry for entry in list(self.log) if entry.operation == operation]

    def as_json(self) -> dict[str, Any]:
        """What GET /_log gives: everything but bodies and headers."""
        hidden = {"body", "headers"}
        return {
            "requests": [{k: v for k, v in asdict(entry).items() if k not in hidden} for entry in self.log],
            "outcomes": Counter(entry.outcome for entry in self.log if entry.operation == faulty.MESSAGES),
            "asked": Counter(entry.hash for entry in self.log if entry.operation == faulty.MESSAGES),
            "answered": self.model.answered,
            "charged": self.model.charged,
            "most_in_flight": max((entry.in_flight for entry in self.requests()), default=0),
            "batches": [
                {
                    "id": batch.id,
                    "custom_ids": list(batch.requests),
                    "hashes": [body_hash(body) for body in batch.requests.values()],
                    "ended": batch.ended,
                }
                for batch in self.model.batches
            ],
        }

    async def handle(self, request: Request, connection: Connection) -> None:
        if request.path == "/_log":
            await connection.reply_json(200, self.as_json())
            return
        operation = _operation(request)
        self._in_flight[operation] += 1
        entry = Logged(len(self.log), operation, request.method, request.path, request.headers)
        entry.at = monotonic() - self._started
        entry.in_flight = self._in_flight[operation]
        self.log.append(entry)
        try:
            await self._handle(request, connection, entry)
        finally:
            entry.took = monotonic() - self._started - entry.at
            self._in_flight[operation] -= 1
            if not self._keep_bodies:
                entry.body, entry.headers = None, {}

    async def _handle(self, request: Request, connection: Connection, entry: Logged) -> None:
        try:
            entry.body = json.loads(request.body) if request.body else None
            self._check(request, entry)
            await self._play(request, connection, entry)
        except _RefusedError as refusal:
            entry.outcome = str(refusal.status)
            body = refusal.body(_request_id(entry))
            await connection.reply_json(refusal.status, body, {**_headers(entry), **refusal.headers})

    async def _play(self, request: Request, connection: Connection, entry: Logged) -> None:
        number = self._asked[entry.operation]
        self._asked[entry.operation] += 1
        fault = self._fault(Asked(entry.operation, number, entry.in_flight, entry.question))
        entry.outcome = type(fault).__name__ if fault is not None else ""
        match fault:
            case faulty.Status():
                message = f"{fault.message} ({self._key})" if fault.echo_key else fault.message
                details = {"error_code": fault.error_code} if fault.error_code else None
                told = {"retry-after": fault.retry_after, "location": fault.location}
                headers = {name: value for name, value in told.items() if value is not None}
                raise _RefusedError(fault.status, fault.type, message, headers, details)
            case faulty.Reset():
                connection.reset()
            case faulty.Hang():
                await asyncio.sleep(fault.seconds)
                connection.close()
            case faulty.Malformed() if not entry.stream:
                await connection.reply(200, b'{"id": "msg_1", "content": [{', _headers(entry, _JSON))
            case _:
                await self._carry_out(request, connection, entry, fault)

    def _check(self, request: Request, entry: Logged) -> None:
        """Raises _RefusedError where the API would not take the request."""
        told = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
        if told != self._key:
            raise _RefusedError(401, "authentication_error", "invalid x-api-key")
        if not request.headers.get("anthropic-version"):
            raise _RefusedError(400, "invalid_request_error", "anthropic-version: header is required")
        try:
            match entry.operation:
                case faulty.MESSAGES:
                    check_message(entry.body, self._models)
                case faulty.COUNT_TOKENS:
                    check_message({"max_tokens": 1, **(entry.body or {})}, self._models)
                case faulty.BATCH_CREATE:
                    check_batch(entry.body, self._models)
                case "":
                    raise _RefusedError(404, "not_found_error", "Not found")
        except InvalidRequestError as error:
            raise _RefusedError(400, "invalid_request_error", str(error)) from error
        except UnknownModelError as error:
            raise _RefusedError(404, "not_found_error", str(error)) from error
        if entry.operation == faulty.MESSAGES:
            entry.hash = body_hash(entry.body)
            entry.question = question(entry.body)
            entry.stream = bool(entry.body.get("stream"))

    async def _carry_out(self, request: Request, connection: Connection, entry: Logged, fault: Fault | None) -> None:
        model = self.model
        content_type = _JSON
        match entry.operation:
            case faulty.MESSAGES:
                await self._message(connection, entry, fault)
                return
            case faulty.COUNT_TOKENS:
                body: Any = {"input_tokens": input_tokens(entry.body)}
            case faulty.BATCH_CREATE:
                body = model.take_batch(entry.body).as_json(self.url)
            case faulty.BATCH_LIST:
                body = page_of(model.batches, request.query, self.url)
            case faulty.BATCH_RESULTS:
                body = b"".join(self._batch(request).result_lines())
                content_type = "application/x-jsonl"
            case _:
                model.look_at(self._batch(request))
                body = self._batch(request).as_json(self.url)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        if await _deliver(connection, fault, data, _headers(entry, content_type)):
            entry.outcome = ANSWERED

    async def _message(self, connection: Connection, entry: Logged, fault: Fault | None) -> None:
        if isinstance(fault, faulty.ErrorEvent) and not entry.stream:
            error = {"type": "error", "error": {"type": fault.type, "message": fault.message}}
            await connection.reply_json(200, error, _headers(entry))
            return
        await asyncio.sleep(self._first_byte_s if entry.stream else self._latency_s)
        try:
            message = self.model.answer(entry.body)
        except LookupError as error:
            raise _RefusedError(500, "api_error", f"the test has no answer for {error}") from error
        if entry.stream:
            rest_s = self._latency_s - self._first_byte_s
            whole = await _deliver_stream(connection, fault, message, _headers(entry), rest_s)
        else:
            whole = await _deliver(connection, fault, json.dumps(message).encode(), _headers(entry, _JSON))
        entry.usage = {name: count for name, count in message["usage"].items() if isinstance(count, int)}
        if whole:
            entry.outcome = ANSWERED
            self.model.answered[entry.hash] += 1

    def _batch(self, request: Request) -> FakeBatch:
        batch_id = request.path.removeprefix("/v1/messages/batches/").split("/")[0]
        batch = self.model.find_batch(batch_id)
        if batch is None:
            raise _RefusedError(404, "not_found_error", f"no batch {batch_id}")
        return batch


class _RefusedError(Exception):
    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        headers: Mapping[str, str] | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self._error = {"type": kind, "message": message, **({"details": details} if details else {})}

    def body(self, request_id: str) -> dict[str, Any]:
        """As the API writes errors."""
        return {"type": "error", "error": self._error, "request_id": request_id}


def _operation(request: Request) -> str:
    parts = request.path.strip("/").split("/")
    match request.method, parts:
        case "POST", ["v1", "messages"]:
            return faulty.MESSAGES
        case "POST", ["v1", "messages", "count_tokens"]:
            return faulty.COUNT_TOKENS
        case "POST", ["v1", "messages", "batches"]:
            return faulty.BATCH_CREATE
        case "GET", ["v1", "messages", "batches"]:
            return faulty.BATCH_LIST
        case "GET", ["v1", "messages", "batches", _]:
            return faulty.BATCH_GET
        case "GET", ["v1", "messages", "batches", _, "results"]:
            return faulty.BATCH_RESULTS
    return ""


def _request_id(entry: Logged) -> str:
    return f"req_{entry.number:06}"


def _headers(entry: Logged, content_type: str = "") -> dict[str, str]:
    return {"request-id": _request_id(entry), **({"content-type": content_type} if content_type else {})}


async def _deliver(connection: Connection, fault: Fault | None, data: bytes, headers: Mapping[str, str]) -> bool:
    if await _late_or_lost(connection, fault):
        return False
    cut_at = len(data) // 2 if isinstance(fault, faulty.BrokenStream) else None
    await connection.reply(200, data, headers, cut_at=cut_at)
    return cut_at is None


async def _deliver_stream(
    connection: Connection, fault: Fault | None, message: Mapping[str, Any], headers: Mapping[str, str], lasts_s: float
) -> bool:
    """Sends a message as events over so many seconds; whether all of them went out as they should."""
    if await _late_or_lost(connection, fault):
        return False
    events = list(stream_events(message))
    await connection.start(200, {"content-type": "text/event-stream", **headers})
    for sent, event in enumerate(events):
        match fault:
            case faulty.BrokenStream(after, in_order) if sent == after:
                if in_order:
                    await connection.finish()
                connection.close()
                return False
            case faulty.ErrorEvent(kind, text, after) if sent == after:
                await connection.send(_event({"type": "error", "error": {"type": kind, "message": text}}))
                await connection.finish()
                return False
            case faulty.Malformed() if sent == len(events) - 2:
                await connection.send(b'event: message_delta\ndata: {"type": "message_del\n\n')
                await connection.finish()
                return False
        await connection.send(_event(event))
        if lasts_s:
            await asyncio.sleep(lasts_s / len(events))
    await connection.finish()
    return True


async def _late_or_lost(connection: Connection, fault: Fault | None) -> bool:
    """Waits where the fault says so; whether the reply is not to be sent at all."""
    if isinstance(fault, faulty.Slow | faulty.LostReply):
        await asyncio.sleep(fault.seconds)
    if isinstance(fault, faulty.LostReply):
        connection.reset()
        return True
    return False


def _event(event: Mapping[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def main() -> None:
    latency, answer, rate = sys.argv[1:]
    faults = faulty.RandomFaults({faulty.RATE_LIMITED: float(rate) / 2, faulty.OVERLOADED: float(rate) / 2})
    with AnthropicServer(lambda body: answer, latency_s=float(latency), keep_bodies=False, faults=faults) as server:
        print(json.dumps({"url": server.url, "key": KEY}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()

"""A small fake of an OpenAI-compatible endpoint on a real socket: chat completions, whole or streamed, and faults.

with OpenAIServer([Says("42"), Status(429)]) as server: … f"{server.url}/v1", server.asked
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval_pipeline_tests.fakes.http_socket import Connection, Request, SocketServer

KEY = "sk-fake-openai-0123456789abcdef"
USAGE = {"prompt_tokens": 30, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 20}}


@dataclass(frozen=True, slots=True)
class Says:
    """An answer; streamed word by word where a stream is asked for."""

    text: str
    finish: str | None = "stop"
    refusal: str | None = None
    usage: Mapping[str, Any] | None = field(default_factory=lambda: USAGE)


@dataclass(frozen=True, slots=True)
class Status:
    """An error status; `{key}` in the message is the key that was sent, as a careless gateway repeats it."""

    status: int
    message: str = "made to fail"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Raw:
    """These bytes as they are."""

    body: bytes
    content_type: str = "application/json"
    encoding: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CutOff:
    """The connection closes in the middle of an answer."""


@dataclass(frozen=True, slots=True)
class ErrorInAnswer:
    """Status 200, the first word of an answer where it is streamed, then an error."""

    error: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection is reset before an answer."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing comes."""


Step = Says | Status | Raw | CutOff | ErrorInAnswer | Reset | Hang


class OpenAIServer(SocketServer):
    """The fake, which keeps requests for completions in order.

    Without a step left in the script it answers 42, or what `model` answers to the text of the prompt.
    """

    def __init__(
        self, script: Sequence[Step] = (), tokens: int = 30, model: Callable[[str], str] = lambda prompt: "42"
    ) -> None:
        super().__init__()
        self._script = list(script)
        self._model = model
        self._tokens = tokens
        self.asked: list[Request] = []
        self.bodies: list[dict[str, Any]] = []

    async def handle(self, request: Request, connection: Connection) -> None:
        if request.path == "/v1/chat/completions/input_tokens":
            await connection.reply_json(200, {"input_tokens": self._tokens})
        elif request.path == "/tokenize" and json.loads(request.body).keys() == {"model", "messages"}:
            await connection.reply_json(
                200, {"count": self._tokens, "max_model_len": 4096, "tokens": [1] * self._tokens}
            )
        elif request.path == "/v1/models":
            await connection.reply_json(200, {"object": "list", "data": [{"id": "m"}, {"id": "m-large"}]})
        elif request.path.endswith("/v1/models/m"):  # Anthropic's, of one model
            await connection.reply_json(
                200, {"id": "m", "type": "model", "display_name": "M", "created_at": "2026-01-01T00:00:00Z"}
            )
        elif request.path.endswith(("/chat/completions", "/responses")):
            self.asked.append(request)
            self.bodies.append(json.loads(request.body))
            prompt = "\n\n".join(message.get("content") or "" for message in self.bodies[-1].get("messages", ()))
            step = self._script.pop(0) if self._script else Says(self._model(prompt))
            await self._play(step, request, connection)
        else:
            await connection.reply_json(404, {"error": {"message": f"no route {request.path}"}})

    async def _play(self, step: Step, request: Request, connection: Connection) -> None:
        streamed = bool(self.bodies[-1].get("stream"))
        match step:
            case Says():
                await (_stream(step, connection) if streamed else connection.reply_json(200, _whole(step)))
            case Status():
                message = step.message.replace("{key}", request.headers.get("authorization", ""))
                error = {"error": {"message": message, "type": "made_up", "code": step.code}}
                await connection.reply_json(step.status, error, step.headers)
            case Raw():
                encoding = {"content-encoding": step.encoding} if step.encoding else {}
                headers = {"content-type": step.content_type, **encoding, **step.headers}
                await connection.reply(step.status, step.body, headers)
            case CutOff() if streamed:
                await _begin(connection, "cut")
                connection.close()
            case CutOff():
                await connection.reply(200, json.dumps(_whole(Says("cut"))).encode(), cut_at=30)
            case ErrorInAnswer() if streamed:
                await _begin(connection, "first ")
                await _event(connection, {"error": step.error})
                await connection.finish()
            case ErrorInAnswer():
                await connection.reply_json(200, {"error": step.error})
            case Reset():
                connection.reset()
            case Hang():
                await asyncio.sleep(3600)


def _whole(step: Says) -> dict[str, Any]:
    message = {"role": "assistant", "content": step.text, "refusal": step.refusal}
    choice = {"index": 0, "message": message, "finish_reason": step.finish}
    return {"id": "chatcmpl-1", "model": "fake-2026", "choices": [choice], "usage": step.usage}


async def _stream(step: Says, connection: Connection) -> None:
    words = step.text.split(" ")
    await _begin(connection, words[0])
    for word in words[1:]:
        await _event(connection, _chunk({"content": f" {word}"}))
    if step.refusal:
        await _event(connection, _chunk({"refusal": step.refusal}))
    if step.finish:
        await _event(connection, _chunk({}, step.finish))
    if step.usage:
        await _event(connection, {"id": "chatcmpl-1", "choices": [], "usage": step.usage})
    await connection.send(b"data: [DONE]\n\n")
    await connection.finish()


async def _begin(connection: Connection, text: str) -> None:
    await connection.start(200, {"content-type": "text/event-stream"})
    await _event(connection, _chunk({"role": "assistant", "content": text}))


async def _event(connection: Connection, value: Mapping[str, Any]) -> None:
    await connection.send(f"data: {json.dumps(value)}\n\n".encode())


def _chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-1", "model": "fake-2026", "choices": [choice]}

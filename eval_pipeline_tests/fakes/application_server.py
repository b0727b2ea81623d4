"""A small application under test on a real socket: it answers questions about finqa pages, and misbehaves as told.

In a test:     with ApplicationServer({"How much?": "42"}, [Status(500)]) as server: … server.url, server.asked
As a process:  python -m eval_pipeline_tests.fakes.application_server 8700
"""

import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval_pipeline_tests.fakes.http_socket import Connection, Request, SocketServer
from eval_pipeline_tests.fakes.openai_server import Hang, Reset

TOKEN = "Bearer token-of-the-application-77"


@dataclass(frozen=True, slots=True)
class Status:
    """A status, with a body and headers; `{token}` in the body is what the client authorised itself with."""

    status: int
    body: str = '{"detail": "made to fail"}'
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Raw:
    """Status 200 and these bytes; of them only so many where `cut_at` says so."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_at: int | None = None


@dataclass(frozen=True, slots=True)
class Drip:
    """The answer comes byte by byte, and never ends."""

    pause_s: float = 0.02


@dataclass(frozen=True, slots=True)
class Flood:
    """An answer without end, as fast as it goes."""


Step = Status | Raw | Drip | Flood | Reset | Hang


class ApplicationServer(SocketServer):
    """The application: POST /ask gets {"result": {"sql": …, "calculation": …}, "usage": {…}, "cost_usd": …}.

    `asked` are the requests, in order.
    """

    def __init__(self, answers: Mapping[str, str] | None = None, script: Sequence[Step] = (), port: int = 0) -> None:
        """A question that is in neither is answered with 42."""
        super().__init__(port)
        self._answers = dict(answers or {})
        self._script = list(script)
        self.asked: list[Request] = []
        self.bodies: list[dict[str, Any]] = []

    async def handle(self, request: Request, connection: Connection) -> None:
        if (request.method, request.path) != ("POST", "/ask"):
            await connection.reply_json(404, {"detail": "Not Found"})
            return
        self.asked.append(request)
        self.bodies.append(body := json.loads(request.body))
        if self._script:
            await _play(self._script.pop(0), request, connection)
            return
        said = self._answers.get(body["question"], "42")
        answer = {
            "result": {"calculation": said, "steps": [said]},
            "usage": {"input": len(request.body), "output": len(said)},
            "cost_usd": 0.0025,
        }
        await connection.reply_json(200, answer, {"x-request-id": f"request-{len(self.asked)}"})


async def _play(step: Step, request: Request, connection: Connection) -> None:
    match step:
        case Status():
            body = step.body.replace("{token}", request.headers.get("authorization", ""))
            await connection.reply(step.status, body.encode(), step.headers)
        case Raw():
            await connection.reply(200, step.body, step.headers, cut_at=step.cut_at)
        case Drip():
            await connection.start(200, {"content-type": "application/json"})
            while connection.open:
                await connection.send(b" ")
                await asyncio.sleep(step.pause_s)
        case Flood():
            await connection.start(200, {"content-type": "text/plain"})
            while connection.open:
                await connection.send(b"x" * 262_144)
        case Reset():
            connection.reset()
        case Hang():
            await asyncio.sleep(3600)


def main() -> None:
    with ApplicationServer(port=int(sys.argv[1]) if len(sys.argv) > 1 else 0) as server:
        print(json.dumps({"url": server.url}), flush=True)
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    main()

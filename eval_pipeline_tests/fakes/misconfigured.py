"""A model that knows every answer, behind an address that is set up wrongly: on a real socket, in both wire forms.

Conversation i, turn t of the suite of `cases` has the answer `value(i, t)`, which the model finds by the question. What
stands between it and the client is told by a mapping, as `golden/misconfigurations.yaml` has it.
"""

import base64
import gzip
import json
import re
from collections.abc import Mapping
from typing import Any

from eval_pipeline_tests.fakes.http_socket import Connection, Request, SocketServer
from eval_pipeline_tests.support import case, number

CONVERSATIONS, TURNS = 15, 4
_QUESTION = re.compile(r"\bq(\d+) (\d+)\?")
_PROMPT = "You are a careful analyst. Your task is to answer with a plan as JSON."


def value(conversation: int, turn: int) -> float:
    """The right answer; all are different, and none is a multiple of another by chance."""
    return 1000.0 + 101 * conversation + 17 * turn


def cases() -> list[dict[str, Any]]:
    turns = {i: [(f"add({value(i, t) - 3}, 3)", value(i, t)) for t in range(TURNS)] for i in range(CONVERSATIONS)}
    return [case(f"q{i:03}", *turns[i]) for i in turns]


class MisconfiguredServer(SocketServer):
    """The fake; everything that is not told goes right. `questions`: conversation and turn of those it answered."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        """`told`: `says` (what the model answers), `wraps` (in what), and `status`, `body`, `headers` of replies."""
        super().__init__()
        self.told = dict(told)
        self.asked = 0
        self.questions: list[tuple[int, int]] = []

    async def handle(self, request: Request, connection: Connection) -> None:
        told = self.told
        self.asked += 1
        if request.path not in {"/v1/chat/completions", "/ask"}:
            await connection.reply(404, b'{"detail": "Not Found"}', {"content-type": "application/json"})
            return
        if "body" in told or "status" in told or "bytes" in told:
            content = base64.b64decode(told["bytes"]) if "bytes" in told else str(told.get("body", "")).encode()
            headers = {"content-type": "application/json", **told.get("headers", {})}
            await connection.reply(int(told.get("status", 200)), content, headers)
            return
        asked = json.loads(request.body)
        text, finish = self._says(asked)
        if request.path == "/ask":
            await self._as_application(text, connection)
        else:
            await self._as_model(text, finish, bool(asked.get("stream")), connection)

    def _says(self, asked: Mapping[str, Any]) -> tuple[str, str]:
        """What the model answers, and why it ended."""
        text = asked["question"] if "question" in asked else asked["messages"][-1]["content"]
        conversation, turn = (int(part) for part in _QUESTION.findall(text)[-1])
        self.questions.append((conversation, turn))
        right = value(conversation, turn)
        says = str(self.told.get("says", "right"))
        numbers = {
            "right": right,
            "percent": right * 100,
            "thousands": right / 1000,
            "negative": -right,
            "shifted": value(conversation, turn + 1),
            "first turns": right if turn == 0 else value(conversation, 0) / 7,
            "another turn": value(conversation, (turn + 2) % TURNS),
            "other conversation": value((conversation + 7) % CONVERSATIONS, turn) + 0.123,
        }
        texts = {
            "calculation": f"{right:g}",
            "sometimes 0": "0" if conversation % 3 == 0 else f"{right:g}",
            "sql": json.dumps({"sql": f"SELECT {right}", "confidence": "high"}),
            "prompt": _PROMPT,
            "example": f"{_PROMPT} For example: {number(42)}",
            "prose": f"The answer is {right:g} million dollars.",
            "cut": number(right)[:12],
            "cut without a word": number(right)[:12],
            "cut thinking": "<think>Let me see, the sales of the year before were",
            "nothing": "",
            "tokens": "".join(chr(0xE000 + (conversation * 7 + k) % 500) for k in range(80)),
            "filtered": "",
            "fenced in a text": json.dumps(number(right)),
        }
        finish = {"cut": "length", "filtered": "content_filter"}.get(says, "stop")
        return number(numbers[says]) if says in numbers else texts.get(says, says), finish

    async def _as_application(self, text: str, connection: Connection) -> None:
        wraps = self.told.get("wraps", "result.calculation")
        body: Any = text
        for name in reversed(wraps.split(".")) if wraps else ():
            body = {name: body}
        content = body if isinstance(body, str) else json.dumps(body)
        await self._reply(content, "application/json", connection)

    async def _as_model(self, text: str, finish: str, stream: bool, connection: Connection) -> None:
        message = {"role": "assistant", "content": text}
        whole = {"id": "c1", "model": "fake", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}
        if stream and self.told.get("streams", True):
            chunk = {"id": "c1", "choices": [{"index": 0, "delta": message, "finish_reason": finish}]}
            await self._reply(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n", "text/event-stream", connection)
        else:
            await self._reply(json.dumps(whole), "application/json", connection)

    async def _reply(self, content: str, label: str, connection: Connection) -> None:
        data = content.encode(self.told.get("encoding", "utf-8"))
        if self.told.get("packed"):
            data = gzip.compress(data)
        headers = {"content-type": self.told.get("label", label), **self.told.get("headers", {})}
        await connection.reply(200, data, headers)

"""The tools of a case, served to a program that works on it: by plain JSON, and as MCP.

    GET  /eval/tools         → {"tools": [{"name", "description", "inputSchema"}, …]}
    POST /eval/tools/<name>  the arguments as JSON → {"result", "error": class or null, "ends"}
    POST /eval/tools         a message of MCP → its answer (streamable HTTP, without a session)

`answer` gives what the user says next, or ends the task.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from eval_pipeline.asking.journal.codec import call_told
from eval_pipeline.asking.proxy.calls import MadeCall
from eval_pipeline.asking.proxy.gate import NotCalledError, StepCount
from eval_pipeline.asking.proxy.relay import Reply
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json, Tool, ToolCall
from eval_pipeline.core.reading.json_reading import JsonError, parsed_json
from eval_pipeline.core.system.programs import TOOLS_PATH

if TYPE_CHECKING:
    from eval_pipeline.asking.proxy.serving import Received

_JSON = {"content-type": "application/json"}
_VERSION = "2025-06-18"
_UNREADABLE, _UNKNOWN, _REFUSED = -32700, -32601, -32000


class CaseTools:
    """Serves the tools of one attempt, whose calls are made one after the other.

    Attributes:
        made: the calls, in order.
    """

    def __init__(self, tools: Sequence[Tool], call: Callable[[ToolCall], Awaitable[Mapping[str, Json]]]) -> None:
        """Calls nothing yet.

        Args:
            tools: what can be called.
            call: calls one and returns what it gave, as it is told in a step.
        """
        self.made: list[MadeCall] = []
        self._tools, self._call, self._one_at_a_time = tools, call, asyncio.Lock()
        self._closed = False

    def close(self) -> None:
        """Makes no further call, also of those that wait for another one: the program has ended."""
        self._closed = True

    @property
    def ended(self) -> bool:
        """Whether the task is answered."""
        return bool(self.made and self.made[-1].step["ends"])

    async def answer(self, received: "Received", steps: StepCount, place: Callable[[], int]) -> Reply | None:
        """Answers a request; None if nothing is served at its path.

        Args:
            received: the request.
            steps: counts the calls.
            place: returns how many calls of models have begun.
        """
        method, path = received.method, received.path
        if (method, path) == ("GET", TOOLS_PATH) and "event-stream" not in received.headers.get("accept", ""):
            return _reply({"tools": self._listed()})
        if method != "POST" or not (path == TOOLS_PATH or path.startswith(f"{TOOLS_PATH}/")):
            return None
        try:
            told = parsed_json(received.body.decode(errors="replace") or "{}")
        except JsonError as error:
            return _reply(_error(None, _UNREADABLE, f"the body is no JSON: {error}"), 400)
        if not isinstance(told, dict):
            return _reply(_error(None, _UNREADABLE, "the body is no JSON object"), 400)
        if path == TOOLS_PATH:
            return await self._message(told, steps, place)
        try:
            step = await self._made(ToolCall("", path.removeprefix(f"{TOOLS_PATH}/"), told), steps, place)
        except NotCalledError as error:
            return _reply({"error": {"message": f"no further call is allowed: {error}"}}, 400)
        return _reply({"result": step["result"], "error": step["error_class"], "ends": step["ends"]})

    async def _message(self, told: Mapping[str, Json], steps: StepCount, place: Callable[[], int]) -> Reply:
        """Answers a message of MCP."""
        match told:
            case {"id": str() | int() as one, "method": "tools/call", "params": {"name": str() as name, **rest}}:
                arguments = rest.get("arguments") or {}
                call = ToolCall("", name, arguments if isinstance(arguments, dict) else {})
                try:
                    step = await self._made(call, steps, place)
                except NotCalledError as error:
                    return _reply(_error(one, _REFUSED, f"no further call is allowed: {error}"))
                content = [{"type": "text", "text": step["result"]}]
                return _reply(_result(one, {"content": content, "isError": step["error_class"] is not None}))
            case {"id": str() | int() as one, "method": "tools/list"}:
                return _reply(_result(one, {"tools": self._listed()}))
            case {"id": str() | int() as one, "method": "initialize"}:
                about = {"name": "eval-pipeline", "version": "1"}
                known = {"protocolVersion": _VERSION, "capabilities": {"tools": {}}, "serverInfo": about}
                return _reply(_result(one, known))
            case {"id": str() | int() as one, "method": "ping"}:
                return _reply(_result(one, {}))
            case {"id": str() | int() as one}:
                return _reply(_error(one, _UNKNOWN, "this method is not known here"))
        return Reply(202, {})

    async def _made(self, call: ToolCall, steps: StepCount, place: Callable[[], int]) -> Mapping[str, Json]:
        async with self._one_at_a_time:
            if self.ended or self._closed:
                raise NotCalledError("the task is answered" if self.ended else "the program has ended")
            steps.make(call)
            begun = place()
            told = await self._call(call)
            self.made.append(MadeCall(begun, call, {"kind": "tool", **call_told(call), **told}))
            return told

    def _listed(self) -> list[Json]:
        told = [(one.name, one.description, dict(one.parameters)) for one in self._tools]
        return [dict(zip(("name", "description", "inputSchema"), one, strict=True)) for one in told]


def _reply(told: Json, status: int = 200) -> Reply:
    return Reply(status, _JSON, json_text(told).encode(errors="replace"))


def _result(number: Json, told: Json) -> Json:
    return {"jsonrpc": "2.0", "id": number, "result": told}


def _error(number: Json, code: int, message: str) -> Json:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}

"""An endpoint whose model is an agent that follows scripts, in the forms of three APIs, whole or streamed.

with AgentServer({"How many?": [("sql", {"query": "SELECT 1"}), ("answer", {"answer": 1})]}) as server: … server.url
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from eval_pipeline_tests.fakes.http_socket import Connection, Request, SocketServer

Call = tuple[str, Mapping[str, Any]]


class AgentServer(SocketServer):
    """Answers with the next calls of the script for the task that the conversation begins with.

    Attributes:
        asked: hashes of the conversations that it was asked to go on with, in order.
        tools: names of the tools that the last request offered.
    """

    def __init__(self, scripts: Mapping[str, Sequence[Call]], together: int = 1, seconds: float = 0.0) -> None:
        """`together` calls come in one answer, after so many seconds."""
        super().__init__()
        self._scripts, self._together, self._seconds = scripts, together, seconds
        self.asked: list[str] = []
        self.tools: list[str] = []
        self.noticed: Callable[[int], None] = lambda number: None
        """Called with the number of each request before it is answered."""

    async def handle(self, request: Request, connection: Connection) -> None:
        kind = request.path.rpartition("/")[2]
        if kind not in ("completions", "responses", "messages"):
            await connection.reply_json(404, {"error": {"message": f"no route {request.path}"}})
            return
        body = json.loads(request.body)
        items = body["input"] if kind == "responses" else body["messages"]
        self.asked.append(sha256(json.dumps(_plain(items), sort_keys=True).encode()).hexdigest())
        self.tools = [tool.get("name") or tool["function"]["name"] for tool in body.get("tools", ())]
        self.noticed(len(self.asked))
        await asyncio.sleep(self._seconds)
        calls = self._next(items)
        if kind == "messages":
            await _messages(calls, connection, streamed=bool(body.get("stream")))
        elif kind == "responses":
            await _responses(calls, connection, streamed=bool(body.get("stream")))
        else:
            text = self._text_of(calls)
            await _chat([] if text != DONE else calls, connection, text, streamed=bool(body.get("stream")))

    def _text_of(self, calls: Sequence[tuple[str, Call]]) -> str:
        """What is said; whoever calls no tools says other things."""
        return DONE

    def _next(self, items: Sequence[Mapping[str, Any]]) -> list[tuple[str, Call]]:
        told = [_text(item) for item in items if item.get("role") == "user"]
        (script,) = (script for task, script in self._scripts.items() if any(task in text for text in told))
        done = sum(_results(item) for item in items)
        return [(f"call_{done + place}", call) for place, call in enumerate(script[done : done + self._together])]


def _plain(items: Any) -> Any:
    """The conversation without what only saves money."""
    if isinstance(items, dict):
        return {name: _plain(one) for name, one in items.items() if name != "cache_control"}
    return [_plain(one) for one in items] if isinstance(items, list) else items


def _text(item: Mapping[str, Any]) -> str:
    content = item.get("content") or ""
    return content if isinstance(content, str) else " ".join(str(block.get("text", "")) for block in content)


def _results(item: Mapping[str, Any]) -> int:
    if item.get("role") == "tool" or item.get("type") == "function_call_output":
        return 1
    content = item.get("content")
    return sum(block.get("type") == "tool_result" for block in content) if isinstance(content, list) else 0


DONE = "That is all."
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
_CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "fake"}


async def _chat(calls: Sequence[tuple[str, Call]], connection: Connection, text: str, *, streamed: bool) -> None:
    told = [
        {
            "index": place,
            "id": name,
            "type": "function",
            "function": {"name": call[0], "arguments": json.dumps(call[1])},
        }
        for place, (name, call) in enumerate(calls)
    ]
    finish = "tool_calls" if told else "stop"
    if not streamed:
        message = {"role": "assistant", "content": None if told else text}
        message |= {"tool_calls": told} if told else {}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        whole = {**_CHUNK, "object": "chat.completion", "choices": [choice], "usage": USAGE}
        await connection.reply_json(200, whole)
        return
    await connection.start(200, {"content-type": "text/event-stream"})
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "" if told else text}]
    for one in told:
        arguments = one["function"]["arguments"]
        deltas += [
            {"tool_calls": [{**one, "function": {**one["function"], "arguments": arguments[:5]}}]},
            {"tool_calls": [{"index": one["index"], "function": {"arguments": arguments[5:]}}]},
        ]
    events: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    events.append({"index": 0, "delta": {}, "finish_reason": finish})
    for choice in events:
        await _event(connection, {**_CHUNK, "choices": [choice]})
    await _event(connection, {**_CHUNK, "choices": [], "usage": USAGE})
    await connection.send(b"data: [DONE]\n\n")
    await connection.finish()


async def _responses(calls: Sequence[tuple[str, Call]], connection: Connection, *, streamed: bool) -> None:
    response = _response(calls)
    if not streamed:
        await connection.reply_json(200, response)
        return
    await connection.start(200, {"content-type": "text/event-stream"})
    began = {**response, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [
        {"type": f"response.{kind}", "response": began} for kind in ("created", "in_progress")
    ]
    for place, item in enumerate(response["output"]):
        events += _item_events(place, item)
    events.append({"type": "response.completed", "response": response})
    for number, event in enumerate(events):
        told = json.dumps({**event, "sequence_number": number})
        await connection.send(f"event: {event['type']}\ndata: {told}\n\n".encode())
    await connection.finish()


def _item_events(place: int, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What is streamed of one item of the output."""
    at: dict[str, Any] = {"item_id": item["id"], "output_index": place}
    is_call = item["type"] == "function_call"
    kind, field = ("function_call_arguments", "arguments") if is_call else ("output_text", "text")
    empty = {"arguments": ""} if is_call else {"content": []}
    yield {
        "type": "response.output_item.added",
        "output_index": place,
        "item": {**item, "status": "in_progress", **empty},
    }
    at |= {} if is_call else {"content_index": 0}
    whole = item["arguments"] if is_call else item["content"][0]["text"]
    if not is_call:
        yield {"type": "response.content_part.added", **at, "part": {**item["content"][0], "text": ""}}
    for part in (whole[:5], whole[5:]):
        yield {"type": f"response.{kind}.delta", **at, "delta": part, **({} if is_call else {"logprobs": []})}
    yield {
        "type": f"response.{kind}.done",
        **at,
        field: whole,
        **({"name": item["name"]} if is_call else {"logprobs": []}),
    }
    if not is_call:
        yield {"type": "response.content_part.done", **at, "part": item["content"][0]}
    yield {"type": "response.output_item.done", "output_index": place, "item": item}


def _response(calls: Sequence[tuple[str, Call]]) -> dict[str, Any]:
    output: list[dict[str, Any]] = [
        {"type": "function_call", "id": f"f{name}", "call_id": name, "name": call[0], "arguments": json.dumps(call[1])}
        for name, call in calls
    ]
    text = {"type": "output_text", "text": DONE, "annotations": []}
    said: dict[str, Any] = {"type": "message", "id": "m", "role": "assistant", "content": [text]}
    usage: dict[str, Any] = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": "r",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": "fake",
        "output": [{**item, "status": "completed"} for item in output or [said]],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }


async def _messages(calls: Sequence[tuple[str, Call]], connection: Connection, *, streamed: bool) -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "tool_use", "id": name, "name": call[0], "input": dict(call[1])} for name, call in calls
    ] or [{"type": "text", "text": DONE}]
    usage = {"input_tokens": 100, "output_tokens": 10}
    stop = "tool_use" if calls else "end_turn"
    message = {"id": "m", "type": "message", "role": "assistant", "model": "fake", "content": blocks}
    message |= {"stop_reason": stop, "stop_sequence": None, "usage": usage}
    if not streamed:
        await connection.reply_json(200, message)
        return
    await connection.start(200, {"content-type": "text/event-stream"})
    start = {**message, "content": [], "stop_reason": None}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for place, block in enumerate(blocks):
        is_call = block["type"] == "tool_use"
        empty = {**block, "input": {}} if is_call else {**block, "text": ""}
        whole = json.dumps(block["input"]) if is_call else block["text"]
        kind, field = ("input_json_delta", "partial_json") if is_call else ("text_delta", "text")
        events.append({"type": "content_block_start", "index": place, "content_block": empty})
        for part in (whole[:5], whole[5:]):
            delta = {"type": kind, field: part}
            events.append({"type": "content_block_delta", "index": place, "delta": delta})
        events.append({"type": "content_block_stop", "index": place})
    ending = {"stop_reason": stop, "stop_sequence": None}
    events += [{"type": "message_delta", "delta": ending, "usage": {"output_tokens": 10}}, {"type": "message_stop"}]
    for event in events:
        await connection.send(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
    await connection.finish()


async def _event(connection: Connection, value: Mapping[str, Any]) -> None:
    await connection.send(f"data: {json.dumps(value)}\n\n".encode())

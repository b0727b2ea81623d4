"""The tools of a case at the door: plain and as MCP, their limit, and how their calls are told among others."""

import asyncio
import json
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from eval_pipeline.asking.budgets import Amount
from eval_pipeline.asking.journal.port import Journal
from eval_pipeline.asking.journal.sqlite import SqliteJournal
from eval_pipeline.asking.proxy.calls import MadeCall, ProxiedCall
from eval_pipeline.asking.proxy.gate import CallGate, NotCalledError, StepCount
from eval_pipeline.asking.proxy.steps import is_same, steps_of
from eval_pipeline.asking.proxy.tools import CaseTools
from eval_pipeline.core.model import Json, Response, Tool, ToolCall
from eval_pipeline.sandbox import inside
from eval_pipeline.tracks.capabilities import ActLimits
from eval_pipeline_tests.asking.proxy.proxied import MESSAGE, Opened, message, proxied, until
from eval_pipeline_tests.fakes.wire_server import Sent, WireServer

SCHEMA: dict[str, Json] = {"type": "object", "properties": {"n": {"type": "integer"}}}
TOOLS = tuple(Tool(name, f"does {name}", SCHEMA) for name in ("add", "ask_user", "answer"))
DOOR = "/eval/tools"
STDIO = Path(inside.__file__).with_name("tools_stdio.py")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """One in a file, as what is tried here does not depend on it."""
    with SqliteJournal(tmp_path / "j.sqlite") as opened:
        yield opened


def case_tools(replies: int = 0) -> CaseTools:
    """Tools that say what they are called with; the user replies so many times."""
    answers = 0

    async def call(one: ToolCall) -> Mapping[str, Json]:
        nonlocal answers
        answers += one.name == "answer"
        await asyncio.sleep(0)
        ends = one.name == "answer" and answers > replies
        error = None if one.name in {tool.name for tool in TOOLS} else "value_error"
        text = f"{one.name}: {json.dumps(dict(one.arguments))}"
        return {"result": text, "error_class": error, "ends": ends, "answer": one.arguments.get("answer")}

    return CaseTools(TOOLS, call)


def said(*calls: ToolCall) -> ProxiedCall:
    """A model that asks for calls of tools."""
    return ProxiedCall("chat", {"messages": []}, Response("", calls=calls), False)


async def posted(proxy: Opened, path: str, body: bytes | Any) -> tuple[int, Any]:
    async with proxy.http() as client:
        told = await client.post(path, content=body if isinstance(body, bytes) else json.dumps(body).encode())
        return told.status_code, json.loads(told.content) if told.content else None


async def test_they_are_listed_called_and_end_the_task(journal: Journal) -> None:
    tools = case_tools(replies=1)
    with WireServer() as server:
        async with proxied(server.url, journal, tools=tools) as proxy, proxy.http() as client:
            listed = (await client.get(DOOR)).json()["tools"]
            assert [one["name"] for one in listed] == ["add", "ask_user", "answer"]
            assert listed[0] == {"name": "add", "description": "does add", "inputSchema": SCHEMA}
            assert (await client.get(DOOR, headers={"accept": "text/event-stream"})).status_code == 404
            assert await posted(proxy, f"{DOOR}/add", {"n": 1}) == (
                200,
                {"result": 'add: {"n": 1}', "error": None, "ends": False},
            )
            assert (await posted(proxy, f"{DOOR}/nothing", b""))[1]["error"] == "value_error"
            assert (await posted(proxy, f"{DOOR}/answer", {"answer": 1}))[1]["ends"] is False
            assert (await posted(proxy, f"{DOOR}/answer", {"answer": 2}))[1]["ends"] is True
            status, told = await posted(proxy, f"{DOOR}/add", {"n": 1})
            assert status == 400 and "the task is answered" in told["error"]["message"]
    assert tools.ended and [one.call.name for one in tools.made] == ["add", "nothing", "answer", "answer"]
    assert not server.asked and proxy.ended is None


@pytest.mark.parametrize("body", [b"{", b"[1]", b'{"n": NaN}', b'{"n": 1e999}', b"[" * 5000, b"[" * 900 + b"]" * 900])
async def test_a_body_that_is_no_object_calls_nothing(body: bytes, journal: Journal) -> None:
    tools = case_tools()
    with WireServer() as server:
        async with proxied(server.url, journal, tools=tools) as proxy:
            for path in (DOOR, f"{DOOR}/add"):
                assert (await posted(proxy, path, body))[0] == 400
    assert not tools.made


async def test_a_client_of_mcp_finds_them_too(journal: Journal) -> None:
    def asked(method: str, **params: Any) -> Any:
        return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}

    with WireServer() as server:
        async with proxied(server.url, journal, ActLimits(steps=2), tools=case_tools()) as proxy:
            began = (await posted(proxy, DOOR, asked("initialize", protocolVersion="2025-06-18")))[1]["result"]
            assert began["capabilities"] == {"tools": {}} and began["serverInfo"]["name"] == "eval-pipeline"
            assert await posted(proxy, DOOR, {"jsonrpc": "2.0", "method": "notifications/initialized"}) == (202, None)
            assert len((await posted(proxy, DOOR, asked("tools/list")))[1]["result"]["tools"]) == 3
            told = (await posted(proxy, DOOR, asked("tools/call", name="add", arguments={"n": 1})))[1]
            assert told == {
                "jsonrpc": "2.0",
                "id": 7,
                "result": {"content": [{"type": "text", "text": 'add: {"n": 1}'}], "isError": False},
            }
            assert (await posted(proxy, DOOR, asked("tools/call", name="no")))[1]["result"]["isError"] is True
            assert (
                "after 2 calls" in (await posted(proxy, DOOR, asked("tools/call", name="add")))[1]["error"]["message"]
            )
            assert (await posted(proxy, DOOR, asked("prompts/list")))[1]["error"]["code"] == -32601
    assert proxy.ended == ("steps", "it had not answered after 2 calls of tools")


@pytest.mark.parametrize("way", ["http", "stdio"])
async def test_the_client_of_the_package_mcp_calls_them(way: str, journal: Journal) -> None:
    pytest.importorskip("mcp")
    from mcp import Client, StdioServerParameters

    tools = case_tools()
    with WireServer() as server, socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}{DOOR}"
        command = StdioServerParameters(command=sys.executable, args=[str(STDIO)], env={"EVAL_TOOLS": url})
        async with (
            proxied(server.url, journal, tools=tools, listening=listening),
            Client(url if way == "http" else command) as client,
        ):
            assert [one.name for one in (await client.list_tools()).tools] == ["add", "ask_user", "answer"]
            told = [await client.call_tool("add", {"n": 1}), await client.call_tool("answer", {"answer": 2})]
    assert [(one.content[0].text, one.is_error) for one in told] == [
        ('add: {"n": 1}', False),
        ('answer: {"answer": 2}', False),
    ]
    assert tools.ended


async def test_calls_at_once_are_made_one_after_the_other_within_the_limit(journal: Journal) -> None:
    tools = case_tools()
    with WireServer() as server:
        async with proxied(server.url, journal, ActLimits(steps=3), tools=tools) as proxy:
            made = await asyncio.gather(*(posted(proxy, f"{DOOR}/add", {"n": n}) for n in range(16)))
    assert [status for status, _ in made].count(200) == len(tools.made) == 3


async def test_tools_that_models_ask_for_count_as_steps(journal: Journal) -> None:
    use = [{"type": "tool_use", "id": f"t{n}", "name": "add", "input": {"n": n}} for n in range(2)]
    with WireServer([Sent(message(content=use, stop_reason="tool_use"))] * 2) as server:
        async with proxied(server.url, journal, ActLimits(steps=4), tools=case_tools()) as proxy:
            for n in range(2):
                assert (await proxy.post(system=str(n))).status_code == 200
            for n in (0, 1, 0, 1):  # these are the ones that were asked for
                assert (await posted(proxy, f"{DOOR}/add", {"n": n}))[0] == 200
            assert (await posted(proxy, f"{DOOR}/add", {"n": 0}))[0] == 400
            assert (await proxy.post(system="2")).status_code == 400
    assert proxy.ended is not None and proxy.ended[0] == "steps"


async def test_a_call_that_follows_its_answer_at_once_is_known_as_asked_for(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while the call of the model still waits for its turn to be counted."""
    counted, leave = asyncio.Event(), CallGate.leave

    async def late(self: CallGate, most: Amount, answered: ProxiedCall | None) -> None:
        await counted.wait()
        await leave(self, most, answered)

    monkeypatch.setattr(CallGate, "leave", late)
    use = [{"type": "tool_use", "id": "t", "name": "add", "input": {"n": 1}}]
    with WireServer([Sent(message(content=use, stop_reason="tool_use")), Sent(message())]) as server:
        async with (
            proxied(server.url, journal, ActLimits(steps=2), tools=case_tools()) as proxy,
            proxy.http() as client,
        ):
            first = asyncio.ensure_future(
                client.send(client.build_request("POST", "/v1/messages", json=MESSAGE), stream=True)
            )
            await (await first).aiter_raw().__anext__()
            assert (await posted(proxy, f"{DOOR}/add", {"n": 1}))[0] == 200
            counted.set()
            await (await first).aclose()
            assert (await proxy.post(system="next")).status_code == 200
    assert proxy.ended is None


async def test_who_has_ended_makes_no_further_calls(journal: Journal) -> None:
    """Those that wait for others are not made; each might take as long as the whole task may."""
    began, goes_on, made = asyncio.Event(), asyncio.Event(), list[str]()

    async def call(one: ToolCall) -> Mapping[str, Json]:
        made.append(one.name)
        began.set()
        await goes_on.wait()
        return {"result": "", "error_class": None, "ends": False, "answer": None}

    with WireServer() as server:
        async with proxied(server.url, journal, tools=CaseTools(TOOLS, call)) as proxy:
            asked = [asyncio.ensure_future(posted(proxy, f"{DOOR}/add", {"n": n})) for n in range(4)]
            await began.wait()
            await until(lambda: len(proxy._tasks) == 4)
            asyncio.get_running_loop().call_later(0.05, goes_on.set)
        await asyncio.gather(*asked, return_exceptions=True)
    assert made == ["add"]


def test_a_name_as_long_as_a_request_is_compared_at_once() -> None:
    steps, name = StepCount(2), "(" * 5_000_000
    steps.ask(said(ToolCall("a", "add", {})))
    began = perf_counter()
    steps.make(ToolCall("", name, {}))
    assert perf_counter() - began < 1.0


@pytest.mark.parametrize("asked", ["add", "mcp__eval__add", "eval.add", "\n-add"])
def test_names_that_clients_make_of_a_tool_are_known(asked: str) -> None:
    assert is_same(ToolCall("", asked, {"n": 1}), ToolCall("", "add", {"n": 1}))
    assert not is_same(ToolCall("", f"{asked}x", {"n": 1}), ToolCall("", "add", {"n": 1}))
    assert not is_same(ToolCall("", f"{asked[:-3]}madd", {"n": 1}), ToolCall("", "add", {"n": 1}))
    assert not is_same(ToolCall("", asked, {"n": 1}), ToolCall("", "", {"n": 1}))


def test_a_call_that_a_model_asked_for_counts_once() -> None:
    steps = StepCount(2)
    steps.ask(said(ToolCall("a", "mcp__eval__add", {"n": 1}), ToolCall("b", "madd", {"n": 2})))
    assert steps.reached() is not None
    steps.make(ToolCall("", "add", {"n": 1}))
    for call in (ToolCall("", "add", {"n": 1}), ToolCall("", "add", {"n": 2})):
        with pytest.raises(NotCalledError):
            steps.make(call)


def test_their_calls_stand_where_they_were_made() -> None:
    def made(place: int, name: str, **arguments: Json) -> MadeCall:
        step = {"kind": "tool", "id": "", "name": name, "arguments": arguments, "result": f"own {place}"}
        return MadeCall(place, ToolCall("", name, arguments), step)

    calls = [said(ToolCall("a", "mcp__eval__add", {"n": 1}), ToolCall("b", "answer", {"answer": 1})), said()]
    found = [made(0, "ask_user", question="?"), made(1, "add", n=1), made(1, "add", n=2), made(2, "answer", answer=2)]
    steps = steps_of(calls, found, ("answer", "ask_user"))
    assert [(one.get("name"), one.get("id"), one.get("result")) for one in steps] == [
        ("ask_user", "", "own 0"),
        (None, None, None),
        ("add", "a", "own 1"),
        ("own answer", "b", ""),
        ("add", "", "own 1"),
        (None, None, None),
        ("answer", "", "own 2"),
    ]

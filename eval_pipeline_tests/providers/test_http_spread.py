"""Connections: several pools behind one client, and which are used again: those of whole answers.

The head of an answer that llama.cpp's server streams says `Keep-Alive: timeout=5`, and the connection closes with its
end. What is sent before the client has noticed is lost.
"""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest

from eval_pipeline.providers.anthropic.provider import AnthropicProvider
from eval_pipeline.providers.http.spread import http_client
from eval_pipeline.providers.openai import chat as openai_chat
from eval_pipeline_tests.fakes.anthropic_lab import case_call, version_for, with_provider
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer
from eval_pipeline_tests.fakes.http_socket import Connection, Request
from eval_pipeline_tests.fakes.openai_lab import ask, make_provider
from eval_pipeline_tests.fakes.openai_server import OpenAIServer
from eval_pipeline_tests.fakes.scripted import make_call
from eval_pipeline_tests.fakes.virtual_time import in_virtual_time

IN_FLIGHT = 128
POOLS = 4


class Lab(httpx2.AsyncBaseTransport):
    """What sends for one client: answers when told to, and sets a cookie."""

    made: list["Lab"]
    go: asyncio.Event

    def __init__(self) -> None:
        self.asked = list[httpx2.Request]()
        self.closed = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        await Lab.go.wait()
        if request.url.path == "/broken":
            raise httpx2.ConnectError("nobody there")
        return httpx2.Response(200, headers={"set-cookie": "route=a"}, stream=httpx2.ByteStream(b"ok"))

    async def aclose(self) -> None:
        self.closed = True


class Client(httpx2.AsyncClient):
    def __init__(self, **arguments: object) -> None:
        Lab.made.append(Lab())
        super().__init__(**arguments, transport=Lab.made[-1])  # type: ignore[arg-type]  # whatever the caller says


def made(in_flight: int = IN_FLIGHT) -> httpx2.AsyncClient:
    Lab.made, Lab.go = [], asyncio.Event()
    return http_client(Client, in_flight, verify=False, headers={"x-key": "k"}, follow_redirects=False)


def shares() -> list[int]:
    return [len(lab.asked) for lab in Lab.made]


@pytest.mark.parametrize(("in_flight", "pools"), [(1, 1), (32, 1), (33, 2), (IN_FLIGHT, POOLS)])
@in_virtual_time
async def test_a_pool_for_so_many_calls(in_flight: int, pools: int) -> None:
    async with made(in_flight):
        assert len(Lab.made) == pools


@in_virtual_time
async def test_calls_in_flight_are_spread_evenly_and_calls_in_turn_share_their_connection() -> None:
    async with made() as client:
        asking = [asyncio.create_task(client.get("http://app.example/")) for _ in range(IN_FLIGHT)]
        await asyncio.sleep(0)
        Lab.go.set()
        assert Counter([(await task).text for task in asking]) == {"ok": IN_FLIGHT}
        assert shares() == [IN_FLIGHT // POOLS] * POOLS
        for _ in range(3):
            await client.get("http://app.example/")
        assert shares() == [IN_FLIGHT // POOLS + 3, *[IN_FLIGHT // POOLS] * (POOLS - 1)]


@in_virtual_time
async def test_a_stream_is_in_flight_until_it_is_closed_and_a_failed_call_is_not() -> None:
    async with made() as client, AsyncExitStack() as streams:
        Lab.go.set()
        for _ in range(POOLS):
            await streams.enter_async_context(client.stream("GET", "http://app.example/"))
        assert shares() == [1] * POOLS
        closed = await client.send(client.build_request("GET", "http://app.example/"), stream=True)
        assert (await closed.aread(), shares()[0]) == (b"ok", 2)
        await closed.aclose()  # read and closed: no longer counted, and not twice
        for _ in range(2):
            with pytest.raises(httpx2.ConnectError):
                await client.get("http://app.example/broken")
        await client.get("http://app.example/")
        assert shares() == [5, 1, 1, 1]


@in_virtual_time
async def test_what_a_client_is_told_and_learns_holds_for_all_of_its_pools() -> None:
    client = made()
    Lab.go.set()
    await client.get("http://app.example/")
    Lab.go.clear()
    asking = [asyncio.create_task(client.get("http://app.example/")) for _ in range(POOLS)]
    await asyncio.sleep(0)
    Lab.go.set()
    await asyncio.gather(*asking)
    later = [lab.asked[-1] for lab in Lab.made]
    assert [request.headers["x-key"] for request in later] == ["k"] * POOLS
    assert [request.headers["cookie"] for request in later] == ["route=a"] * POOLS
    await client.aclose()
    assert all(lab.closed for lab in Lab.made)
    with pytest.raises(RuntimeError, match="closed"):
        await client.get("http://app.example/")


CALLS = 3


class LateClosing(OpenAIServer):
    """Closes each connection a moment after a streamed answer: the next request is on its way by then."""

    async def handle(self, request: Request, connection: Connection) -> None:
        await super().handle(request, connection)
        if b'"stream":true' in request.body:
            await asyncio.sleep(0.05)
            connection.reset()


def ask_in_turn(server: OpenAIServer, **options: Any) -> list[str]:
    options = {"api_key_env": None, **options}
    return [answer.text for answer in ask(make_provider(server.url, options), *[make_call()] * CALLS)]


@pytest.mark.parametrize(("stream", "connections"), [(False, 1), (True, CALLS)])
def test_of_an_endpoint(stream: bool, connections: int) -> None:
    with OpenAIServer() as server:
        assert ask_in_turn(server, stream=stream) == ["42"] * CALLS
        assert server.connections == connections


@pytest.mark.parametrize(("stream", "connections"), [(False, 1), (True, CALLS)])
def test_of_anthropic(stream: bool, connections: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)

    async def work(provider: AnthropicProvider) -> None:
        for _ in range(CALLS):
            assert (await provider.generate(case_call())).text

    with AnthropicServer() as server:
        with_provider(version_for(server, options={"stream": stream}), work)
        assert server.connections == connections


def test_another_machine_keeps_them_for_streams_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_chat, "headers_of_streams", lambda url: {})  # as of another machine
    with OpenAIServer() as server:
        assert ask_in_turn(server) == ["42"] * CALLS
        assert server.connections == 1


def test_a_server_that_closes_after_a_streamed_answer_loses_no_request() -> None:
    with LateClosing() as server:
        assert ask_in_turn(server) == ["42"] * CALLS

"""Which connections are used again: those of whole answers; not those of answers that a server here streamed.

The head of an answer that llama.cpp's server streams says `Keep-Alive: timeout=5`, and the connection closes with its
end. What is sent before the client has noticed is lost.
"""

import asyncio
from typing import Any

import pytest

from eval_pipeline.providers.anthropic.provider import AnthropicProvider
from eval_pipeline.providers.openai import chat as openai_chat
from eval_pipeline_tests.fakes.anthropic_lab import case_call, version_for, with_provider
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer
from eval_pipeline_tests.fakes.http_socket import Connection, Request
from eval_pipeline_tests.fakes.openai_lab import ask, make_provider
from eval_pipeline_tests.fakes.openai_server import OpenAIServer
from eval_pipeline_tests.fakes.scripted import make_call

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

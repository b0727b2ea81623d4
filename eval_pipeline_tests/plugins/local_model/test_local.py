import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from eval_pipeline.asking.answers import Answered
from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.journal.sqlite import SqliteJournal
from eval_pipeline.core.errors import MissingExtraError
from eval_pipeline.core.installed import plugins
from eval_pipeline.core.model import CallErrorKind, Message, Prompt, Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.anthropic.provider import AnthropicProvider
from eval_pipeline.providers.base import CallError, Environment, FatalCallError
from eval_pipeline.providers.openai.provider import OpenAIProvider
from eval_pipeline.providers.validation import SettingsError
from eval_pipeline_plugins.local_model import provider as local
from eval_pipeline_plugins.local_model.provider import (
    WEIGHTS,
    LocalProvider,
    LocalServer,
    LocalSettings,
    local_available,
    weights,
)
from eval_pipeline_tests.fakes.anthropic_lab import case_call, version_for
from eval_pipeline_tests.fakes.anthropic_server import KEY
from eval_pipeline_tests.fakes.scripted import make_call

WHY_NOT = local_available()


def needs_model(test: Any) -> Any:
    return pytest.mark.services("model")(pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))(test))


SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}, "unit": {"type": "string", "enum": ["raw", "percent"]}},
    "required": ["answer", "unit"],
    "additionalProperties": False,
}


def make_version(**fields: Any) -> ModelVersion:
    return ModelVersion(name="small", provider="local", **{"concurrency": 1, "max_tokens": 40, **fields})


def make_provider(**fields: Any) -> LocalProvider:
    return LocalProvider(make_version(**fields), Environment())


def servers() -> list[psutil.Process]:
    """The servers that this process has started."""
    return [child for child in psutil.Process().children() if "local_model.server" in " ".join(child.cmdline())]


@needs_model
def test_it_answers_under_a_schema_and_is_not_asked_twice(tmp_path: Path) -> None:
    async def ask(journal: SqliteJournal) -> list[Answered]:
        async with make_provider() as provider:
            assert servers() == []  # not before it is needed
            caller = Caller(provider, journal, make_version())
            calls = [make_call(schema=SCHEMA), make_call(schema=SCHEMA, sample=1), make_call(schema=SCHEMA)]
            answers = list(await asyncio.gather(*(caller.ask(call) for call in calls)))
            assert len(servers()) == 1
            leaving = time.monotonic()
        assert servers() == []
        assert time.monotonic() - leaving < 3  # it went by itself, it was not killed
        return [answer for answer in answers if isinstance(answer, Answered)]

    async def ask_again(journal: SqliteJournal) -> Any:
        async with make_provider() as provider:
            answer = await Caller(provider, journal, make_version()).ask(make_call(schema=SCHEMA))
            assert servers() == []  # every answer was in the journal
        return answer

    with SqliteJournal(tmp_path / "j.sqlite") as journal:
        answers = asyncio.run(ask(journal))
        assert len(answers) == 3
        again = asyncio.run(ask_again(journal))
    response = answers[0].response
    assert again == Answered(response, from_journal=True)
    assert set(json.loads(response.text)) == {"answer", "unit"}
    assert response.stop_reason == "stop"
    assert response.call_error is None
    assert response.usage.input_tokens is not None
    assert 10 < response.usage.input_tokens < 60
    assert 5 < (response.usage.output_tokens or 0) <= 40
    assert response.first_byte_ms is not None
    assert response.latency_ms is not None
    assert 0 < response.first_byte_ms < response.latency_ms
    assert response.metadata["request_id"].startswith("chatcmpl-")
    assert response.metadata["sdk"].startswith("openai ")
    assert response.metadata["server"].startswith("xllamacpp ")
    assert response.metadata["model_file"] == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert "model" not in response.metadata  # a path on this machine


@needs_model
def test_errors_limits_and_a_server_that_died() -> None:
    async def ask() -> None:
        async with make_provider(max_tokens=6, options={"context": 512}, sampling={"top_k": 5}) as provider:
            cut = await provider.generate(make_call(text="Tell me a story."))
            assert cut.stop_reason == "length"
            assert cut.call_error == CallErrorKind.MAX_TOKENS
            assert cut.usage.output_tokens == 6

            with pytest.raises(CallError) as too_long:
                await provider.generate(make_call(text="hello world " * 600))
            assert too_long.value.kind == CallErrorKind.BAD_REQUEST
            assert not too_long.value.retryable
            assert "exceeds the available context size" in too_long.value.message

            [server] = servers()
            waiting = asyncio.create_task(provider.generate(make_call(text="Tell me a long story. " * 20)))
            await asyncio.sleep(0.2)
            server.kill()
            with pytest.raises(CallError) as broken:
                await waiting
            assert (broken.value.kind, broken.value.retryable) == (CallErrorKind.CONNECTION, True)
            server.wait(5)
            await asyncio.sleep(0.1)
            assert (await provider.generate(make_call(text="Are you back?"))).usage.output_tokens == 6
            assert [process.pid for process in servers()] != [server.pid]
        assert servers() == []

    asyncio.run(asyncio.wait_for(ask(), 60))


PARENT = """
import asyncio, os, sys, time
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Environment
from eval_pipeline_plugins.local_model.provider import LocalProvider
from eval_pipeline_tests.fakes.scripted import make_call
async def main():
    provider = LocalProvider(ModelVersion(name="small", provider="local", concurrency=1, max_tokens=2), Environment())
    await provider.generate(make_call(text="Hi"))
    if sys.argv[1] == "fork" and os.fork() == 0:
        time.sleep(30)
    print(provider._server.pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


@needs_model
@pytest.mark.parametrize("way", ["plain", "fork"])
def test_the_server_does_not_outlive_a_killed_parent(way: str) -> None:
    """Not even where a fork of the parent still holds the other end of its standard input."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT, way], stdout=subprocess.PIPE, text=True)
    server = psutil.Process(int(parent.stdout.readline()))
    forks = [child for child in psutil.Process(parent.pid).children() if child.pid != server.pid]
    assert len(forks) == (1 if way == "fork" else 0)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    try:
        deadline = time.monotonic() + 10
        while server.is_running() and server.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE
    finally:
        for fork in forks:
            os.kill(fork.pid, signal.SIGKILL)


@needs_model
def test_a_cancelled_start_leaves_no_server() -> None:
    async def ask() -> None:
        async with make_provider() as provider:
            task = asyncio.create_task(provider.generate(make_call()))
            while not servers():
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert servers() == []

    asyncio.run(ask())


@needs_model
def test_a_server_that_does_not_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF but not really")
    monkeypatch.setattr(local, "weights", lambda: broken)

    async def ask() -> None:
        async with make_provider() as provider:
            await provider.generate(make_call())

    with pytest.raises(FatalCallError, match=r"the local server did not start: .+"):
        asyncio.run(ask())
    assert servers() == []


def test_the_request_is_what_is_sent() -> None:
    provider = make_provider(sampling={"temperature": 0.7, "seed": 5, "top_k": 40})
    request = provider.request(make_call(sample=2, schema=SCHEMA))
    assert request["model"] == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert (request["temperature"], request["seed"], request["top_k"], request["max_tokens"]) == (0.7, 7, 40, 40)
    assert request["response_format"]["json_schema"]["schema"] == SCHEMA
    default = make_provider().request(make_call())
    assert (default["temperature"], default["seed"]) == (0.0, 0)
    assert "response_format" not in default


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"model": "gpt-5"}, "model: unknown model; allowed: SmolLM2-135M-Instruct"),
        ({"concurrency": 4}, r"concurrency: 4 is more than options.parallel \(1\)"),
        ({"options": {"thread": 2}}, "options.thread: unknown field; allowed: threads, context, parallel"),
        ({"options": {"threads": 0}}, "options.threads: expected a number of at least 1, found 0"),
        ({"sampling": {"temprature": 1}}, "sampling.temprature: unknown field; allowed: temperature, seed"),
    ],
)
def test_wrong_settings_are_refused(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError, match=f"model version 'small': {told}"):
        make_provider(**fields)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "find_spec", lambda package: None if package == "xllamacpp" else object())
    assert (local_available() or "").startswith("the local model needs xllamacpp; install with ")
    with pytest.raises(MissingExtraError, match="needs xllamacpp; install with "):
        asyncio.run(make_provider().generate(make_call()))


def test_lost_weights_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "find_spec", lambda package: object())
    monkeypatch.setattr(local, "weights", lambda: tmp_path / "gone.gguf")
    assert "weights of the local model are not where they should be" in (local_available() or "")


def test_the_server_gets_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    assert "secret" not in local.child_environment().values()


@needs_model
def test_a_real_server_answers_under_a_schema() -> None:
    """It is reached as any endpoint is."""
    unit = {**SCHEMA, "properties": {"unit": {"enum": ["raw", "percent"]}}, "required": ["unit"]}

    async def asked(provider: OpenAIProvider) -> None:
        response = await provider.generate(make_call(schema=unit))
        assert response.text.replace(" ", "").replace("\n", "") in {'{"unit":"raw"}', '{"unit":"percent"}'}
        assert (response.stop_reason, response.call_error) == ("stop", None)
        assert await provider.count_tokens(make_call(schema=unit)) == response.usage.input_tokens
        with pytest.raises(CallError, match="exceeds the available context size"):
            await provider.generate(make_call(text="hello world " * 3000))

    async def main() -> None:
        server = await LocalServer.start(weights(), LocalSettings().model_dump())
        told = {"base_url": f"{server.address}/v1", "api_key_env": None, "count_tokens": "llama.cpp"}
        sampling = {"temperature": 0.0, "seed": 1, "top_k": 40, "repeat_penalty": 1.0}
        fields = {"model": WEIGHTS, "concurrency": 1, "sampling": sampling, "max_tokens": 40}
        try:
            for stream in (True, False):
                version = ModelVersion(name="v", provider="openai", options=told | {"stream": stream}, **fields)
                async with OpenAIProvider(version, Environment()) as provider:
                    await asked(provider)
        finally:
            await server.stop()

    asyncio.run(asyncio.wait_for(main(), 120))


PAGE = '| item (µ) | 2019 | 2020 |\n| sales – net, "€m" | 412.5 | -331,250 % |\n{"plan": [{"tool": "extract"}]}\n'


@needs_model
def test_tokens_counted_beforehand_are_those_that_are_used() -> None:
    """Of a page and a conversation about it; reading more would take long."""
    said = [("system", "Answer."), ("user", PAGE * 2), ("user", "How much?"), ("assistant", "…"), ("user", "And then?")]
    prompts = [Prompt(tuple(Message(role, text) for role, text in said[:count])) for count in (3, 5)]

    async def both() -> list[tuple[int, int | None]]:
        version = ModelVersion(name="v", provider="local", concurrency=1, max_tokens=1)
        async with LocalProvider(version, Environment()) as provider:
            calls = [replace(make_call(), prompt=prompt) for prompt in prompts]
            return [
                (await provider.count_tokens(call), (await provider.generate(call)).usage.input_tokens)
                for call in calls
            ]

    pairs = asyncio.run(asyncio.wait_for(both(), 300))
    assert [counted for counted, _ in pairs] == [used for _, used in pairs]
    assert 100 < pairs[0][0] < pairs[1][0]


@needs_model
def test_answers_whole_and_streamed_with_schema_cache_and_counted_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    call = case_call("What is the capital of France?", document="Answer in one sentence.", uses=2, schema=SCHEMA)

    async def ask() -> tuple[list[Response], int]:
        server = await LocalServer.start(weights(), LocalSettings().model_dump())
        responses = []
        try:
            for max_tokens, stream in ((40, False), (40, True), (2, False)):
                options = {"base_url": server.address, "stream": stream}
                version = version_for(None, max_tokens=max_tokens, deadline_s=120.0, options=options)
                async with AnthropicProvider(version, Environment()) as provider:
                    responses.append(await provider.generate(call))
                    tokens = await provider.count_tokens(call)
        finally:
            await server.stop()
        return responses, tokens

    (whole, streamed, cut), tokens = asyncio.run(ask())
    for response in (whole, streamed):
        assert response.text
        assert response.call_error in {None, CallErrorKind.MAX_TOKENS}
        assert 1 <= (response.usage.output_tokens or 0) <= 40
        assert response.usage.input_tokens is not None
        assert 20 < response.usage.input_tokens < 60
        assert abs(response.usage.input_tokens - tokens) <= 0.02 * tokens
        assert str(response.metadata["message_id"]).strip()
    assert streamed.first_byte_ms is not None
    assert streamed.latency_ms is not None
    assert streamed.first_byte_ms <= streamed.latency_ms
    assert (cut.call_error, cut.usage.output_tokens) == (CallErrorKind.MAX_TOKENS, 2)

"""The real SDK against a real server and a real model: the llama.cpp server speaks `/v1/messages` too.

It does not look at keys, JSON schemas and cache marks.
"""

import asyncio

import pytest

from eval_pipeline.core.model import CallErrorKind, Response
from eval_pipeline.providers.anthropic.provider import AnthropicProvider
from eval_pipeline.providers.base import Environment
from eval_pipeline.providers.local.process import LocalServer
from eval_pipeline.providers.local.provider import LocalSettings, local_available, weights
from eval_pipeline_tests.fakes.anthropic_lab import case_call, version_for
from eval_pipeline_tests.fakes.anthropic_server import KEY

WHY_NOT = local_available()
pytestmark = [pytest.mark.services("model"), pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))]
SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}


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

"""A real server behind the provider `openai`, and what `local` and it count: llama.cpp's, with the local model."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from eval_pipeline.core.model import Prompt
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Call, CallError, Environment, TokenCounter
from eval_pipeline.providers.local.process import LocalServer
from eval_pipeline.providers.local.provider import WEIGHTS, LocalProvider, LocalSettings, local_available, weights
from eval_pipeline.providers.openai.provider import OpenAIProvider
from eval_pipeline.stages.attempts.ask import history_texts
from eval_pipeline.suites import read_cases
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_tests.fakes.scripted import make_call
from eval_pipeline_tests.support import SHIPPED, Lab

pytestmark = [
    pytest.mark.services("model"),
    pytest.mark.skipif(local_available() is not None, reason=str(local_available())),
]
SCHEMA = {
    "type": "object",
    "properties": {"unit": {"enum": ["raw", "percent"]}},
    "required": ["unit"],
    "additionalProperties": False,
}


def run(asked: Callable[[OpenAIProvider], Awaitable[Any]], **fields: Any) -> Any:
    """What is asked of a server that is reached as any endpoint is."""

    async def main() -> Any:
        server = await LocalServer.start(weights(), LocalSettings().model_dump())
        options = {"base_url": f"{server.address}/v1", "api_key_env": None, **fields.pop("options", {})}
        version = ModelVersion(name="v", provider="openai", model=WEIGHTS, options=options, concurrency=1, **fields)
        try:
            async with OpenAIProvider(version, Environment()) as provider:
                return await asked(provider)
        finally:
            await server.stop()

    return asyncio.run(asyncio.wait_for(main(), 120))


@pytest.mark.parametrize("stream", [True, False])
def test_a_real_server_answers_under_a_schema(stream: bool) -> None:
    async def asked(provider: OpenAIProvider) -> None:
        response = await provider.generate(make_call(schema=SCHEMA))
        assert response.text.replace(" ", "").replace("\n", "") in {'{"unit":"raw"}', '{"unit":"percent"}'}
        assert (response.stop_reason, response.call_error) == ("stop", None)
        assert isinstance(provider, TokenCounter)
        assert await provider.count_tokens(make_call(schema=SCHEMA)) == response.usage.input_tokens
        with pytest.raises(CallError, match="exceeds the available context size"):
            await provider.generate(make_call(text="hello world " * 3000))

    sampling = {"temperature": 0.0, "seed": 1, "top_k": 40, "repeat_penalty": 1.0}
    run(asked, sampling=sampling, max_tokens=40, options={"stream": stream, "count_tokens": "llama.cpp"})


def prompts(lab: Lab) -> list[Prompt]:
    """All turns of two conversations of the shipped suite, about its shortest pages: reading takes the time."""
    (lab.home.data / "suites" / "finqa_sample").symlink_to(SHIPPED / "suites" / "finqa_sample")
    workspace = Workspace(lab.home)
    track = workspace.track("finqa_sample")
    cases = sorted(read_cases(workspace.suite("finqa_sample")), key=lambda case: len(case.context.text))[:2]
    return [
        track.prompt(case, turn, history_texts(track, case, turn, None), "calculation-1")
        for case in cases
        for turn in case.turns
    ]


def test_tokens_counted_beforehand_are_those_that_are_used(lab: Lab) -> None:
    async def both(asked: list[Prompt]) -> list[tuple[int, int | None]]:
        version = ModelVersion(name="v", provider="local", concurrency=1, max_tokens=1)
        async with LocalProvider(version, Environment()) as provider:
            assert isinstance(provider, TokenCounter)
            pairs = []
            for prompt in asked:
                call = made(prompt)
                counted = await provider.count_tokens(call)
                pairs.append((counted, (await provider.generate(call)).usage.input_tokens))
            return pairs

    pairs = asyncio.run(asyncio.wait_for(both(prompts(lab)), 300))
    assert len(pairs) >= 8
    assert [counted for counted, _ in pairs] == [used for _, used in pairs]
    assert min(counted for counted, _ in pairs) > 300


def made(prompt: Prompt) -> Call:
    return Call("suite", "case", "suite/case#0", 0, 0, 0, prompt, make_call().gold, make_call().task)

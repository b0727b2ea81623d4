"""What tests of the provider `openai` share: versions that point to a fake endpoint, calls, and how they fail."""

import asyncio
import traceback
from typing import Any

import pytest

from eval_pipeline.core.model import Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Call, CallError, Environment, FatalCallError
from eval_pipeline.providers.openai.provider import OpenAIProvider
from eval_pipeline_tests.fakes.openai_server import KEY, OpenAIServer, Step
from eval_pipeline_tests.fakes.scripted import make_call


def make_version(url: str, options: dict[str, Any] | None = None, **fields: Any) -> ModelVersion:
    """A model version that asks the endpoint at a URL; `options` are added to its address."""
    options = {"base_url": f"{url}/v1", **(options or {})}
    return ModelVersion(name="v", provider="openai", **{"model": "m", "options": options, "deadline_s": 10, **fields})


def make_provider(
    url: str = "http://127.0.0.1:9", options: dict[str, Any] | None = None, **fields: Any
) -> OpenAIProvider:
    """The provider of such a version."""
    return OpenAIProvider(make_version(url, options, **fields), Environment())


def ask(provider: OpenAIProvider, *calls: Call) -> list[Response]:
    """Answers to calls that are asked one after the other."""

    async def run() -> list[Response]:
        async with provider:
            return [await provider.generate(call) for call in calls or (make_call(),)]

    return asyncio.run(asyncio.wait_for(run(), 30))


def failure(step: Step, stream: bool, **fields: Any) -> CallError | FatalCallError:
    """How a call fails that is answered so; there is nothing of the key in it."""
    with OpenAIServer([step]) as server, pytest.raises((CallError, FatalCallError)) as raised:
        ask(make_provider(server.url, {"stream": stream}, **fields))
    told: CallError | FatalCallError = raised.value
    assert KEY not in "".join(traceback.format_exception(told))  # as `--debug` shows it
    return told

"""What tests of the provider `anthropic` share: versions that point to a fake server, calls with a shared prefix."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from eval_pipeline.core.model import Message, Prompt
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.anthropic.provider import AnthropicProvider
from eval_pipeline.providers.base import Call, Environment
from eval_pipeline_tests.fakes.anthropic_server import AnthropicServer
from eval_pipeline_tests.fakes.scripted import make_call

MODEL = "claude-fake-1"
DOCUMENT = "net cash of 2009 was 8181 thousand dollars. " * 120
"""About 1,300 tokens as the fake server counts: enough to be cached."""

T = TypeVar("T")


def version_for(server: AnthropicServer | None, **fields: Any) -> ModelVersion:
    """A model version that asks the server; `options` are added to its address."""
    options = fields.pop("options", {})
    if server is not None:
        options = {"base_url": server.url, **options}
    given = {"name": "claude", "provider": "anthropic", "model": MODEL, "max_tokens": 100, "deadline_s": 20.0, **fields}
    return ModelVersion(options=options, **given)


def case_call(question: str = "How much?", *, document: str = DOCUMENT, uses: int = 1, **more: Any) -> Call:
    """A question about a document that other questions share."""
    messages = (Message("system", "Answer."), Message("user", document), Message("user", question))
    prompt = Prompt(messages, shared=2, answer_schema=more.pop("schema", None))
    asked = make_call(text=question, sample=more.pop("sample", 0))
    return replace(asked, turn_id=f"suite/case#{question}", prompt=prompt, prefix_uses=uses, **more)


def with_provider(version: ModelVersion, work: Callable[[AnthropicProvider], Awaitable[T]]) -> T:
    """What `work` gives, with a provider that is open while it lasts, in an event loop of its own."""

    async def run() -> T:
        async with AnthropicProvider(version, Environment()) as provider:
            return await work(provider)

    return asyncio.run(run())

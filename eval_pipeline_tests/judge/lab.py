"""What tests of the judge share: judges that ask a fake Anthropic server, or a provider that follows a script."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from eval_pipeline.asking.retries import RetryPolicy
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.judge.cache import JudgementCache
from eval_pipeline.judge.judge import LLMJudge
from eval_pipeline.judge.judgement import Judgement
from eval_pipeline.providers.anthropic.provider import AnthropicProvider
from eval_pipeline.providers.base import Environment, Provider
from eval_pipeline_tests.fakes.anthropic_server import AnthropicServer

AT_ONCE = RetryPolicy(first_pause_s=0.01, longest_pause_s=0.02)
GENERATED = "SELECT name FROM city WHERE big"
EXPECTED = "SELECT name FROM city"

T = TypeVar("T")


def said(choice: str = "same", reasons: str = "They are.") -> str:
    """A judge's answer."""
    return json.dumps({"reasons": reasons, "choice": choice})


def judge_version(server: AnthropicServer | None = None, **fields: Any) -> ModelVersion:
    """The model version of a judge that asks the server."""
    options = {"base_url": server.url} if server is not None else {}
    given = {"name": "judge", "provider": "anthropic", "model": "claude-fake-1", "concurrency": 8, **fields}
    return ModelVersion(options=options, **given)


def with_judge(
    server: AnthropicServer,
    work: Callable[[LLMJudge], Awaitable[T]],
    cache_file: Path | None = None,
    **settings: Any,
) -> T:
    """What `work` gives, with a judge that is open while it lasts, in an event loop of its own."""
    version = judge_version(server, **settings.pop("version", {}))
    provider = AnthropicProvider(version, Environment())
    return with_provider(provider, work, cache_file, version=version, **settings)


def with_provider(
    provider: Provider,
    work: Callable[[LLMJudge], Awaitable[T]],
    cache_file: Path | None = None,
    *,
    version: ModelVersion | None = None,
    **settings: Any,
) -> T:
    """The same with any provider."""

    async def run() -> T:
        cache = JudgementCache(cache_file)
        settings.setdefault("retries", AT_ONCE)
        async with LLMJudge(provider, version or judge_version(), cache, **settings) as judge:
            return await work(judge)

    return asyncio.run(run())


async def ask(judge: LLMJudge, schema: str | None = None) -> Judgement:
    """The judgement on the usual pair."""
    return await judge.judge(GENERATED, EXPECTED, schema)

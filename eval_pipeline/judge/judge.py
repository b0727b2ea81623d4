"""The LLM judge: judges each pair once, within a time limit, and never lets a failure stop the run."""

import asyncio
import traceback
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Self

from eval_pipeline.asking.answers import Counters
from eval_pipeline.asking.budgets import Budget
from eval_pipeline.asking.limits import AdaptiveLimit
from eval_pipeline.asking.retries import DeadlineError, RetryPolicy, within
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import CallErrorKind, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.judge.cache import LIFE_S, JudgementCache
from eval_pipeline.judge.classifier import AskedModel, classify
from eval_pipeline.judge.judgement import OVER_BUDGET, TIMEOUT, Judge, Judgement, NoJudge, why_no_judge
from eval_pipeline.judge.prompt import SQL_MEANING, JudgePrompt
from eval_pipeline.providers.base import CallError, Environment, Provider
from eval_pipeline.providers.registry import create

LIMIT_S = 30.0
"""Time limit for one question in seconds, including retries."""
_CHOICE_TOKENS = 48
"""Tokens of an answer that are reserved for everything but the reasons."""


class LLMJudge:
    """A judge that asks a model; while open, it belongs to one event loop.

    Attributes:
        counters: calls so far, repeated ones among them, and after which errors they were repeated.
        hits: questions answered from the cache or by an equal question asked at the same time.
    """

    def __init__(
        self,
        provider: Provider,
        version: ModelVersion,
        cache: JudgementCache,
        *,
        prompt: JudgePrompt = SQL_MEANING,
        limit_s: float = LIMIT_S,
        retries: RetryPolicy | None = None,
        budget: Budget | None = None,
    ) -> None:
        """Creates the judge without asking anything.

        Args:
            provider: the provider to ask; opened and closed with the judge.
            version: the model version of the judge.
            cache: closed with the judge.
            prompt: the question.
            limit_s: seconds for one question, counted from when the endpoint's limit admits it.
            retries: the retry policy within that time.
            budget: what may be spent; None: no limit.
        """
        self.counters = Counters()
        self.hits = 0
        self._provider = provider
        self._version = version
        self._cache = cache
        self._prompt = prompt
        self._limit_s = limit_s
        self._retries = retries or RetryPolicy()
        self._budget = budget
        self._limit = AdaptiveLimit(version.name, version.concurrency)
        self._under_way: dict[str, asyncio.Future[Judgement | Exception | None]] = {}

    async def judge(self, generated: str, expected: str, schema: str | None = None) -> Judgement:
        """Asks the judge's question. Equal questions asked at the same time share one call.

        Args:
            generated: the model's answer.
            expected: the right answer.
            schema: what both refer to, e.g. the DDL of a database or the question; None if unknown.

        Returns:
            The judgement. If the judge fails or takes too long, `error` is set and the value is 0.0.

        Raises:
            FatalCallError: no question can be answered (e.g. a wrong key or an unknown model).
        """
        asked = perf_counter()
        key = self._key(generated, expected, schema)
        while (shared := self._under_way.get(key)) is not None:
            told = await asyncio.shield(shared)
            if isinstance(told, Exception):
                raise told
            if told is not None:
                self.hits += 1
                return replace(told, usage=Usage(), cached=True, seconds=perf_counter() - asked)
            # The asking task was cancelled: this one looks again and asks itself.
        told = None
        self._under_way[key] = shared = asyncio.get_running_loop().create_future()
        try:
            known = await self._cache.find(key)
            if known is not None:
                self.hits += 1
                told = known
                return replace(known, seconds=perf_counter() - asked)
            judgement = told = await self._ask(generated, expected, schema or "", asked)
            if judgement.error is None:
                await self._cache.keep(key, judgement)
            return judgement
        except Exception as error:
            told = error
            raise
        finally:
            del self._under_way[key]
            shared.set_result(told)

    async def __aenter__(self) -> Self:
        await self._provider.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cache.close()
        await self._provider.__aexit__(kind, error, trace)

    def _key(self, generated: str, expected: str, schema: str | None) -> str:
        version = self._version
        settings = [version.provider, version.model, version.max_tokens, version.sampling, version.options]
        return json_hash([generated, expected, schema, settings, self._prompt.identity])

    async def _ask(self, generated: str, expected: str, schema: str, asked: float) -> Judgement:
        # A small model that degenerates writes one character per token; the choice must still fit after its reasons.
        longest_reason = min(self._prompt.longest_reason, max(self._version.max_tokens - _CHOICE_TOKENS, 1))
        model = AskedModel(self._provider, self._retries, self._limit, self.counters, longest_reason, self._budget)

        def told(value: float, *, choice: str = "", reason: str = "", error: str | None = None) -> Judgement:
            return Judgement(
                value,
                choice,
                reason,
                error,
                trace=traceback.format_exc() if error is not None else None,
                model=f"{self._version.provider}/{self._version.model or self._version.name}",
                prompt_version=self._prompt.identity,
                usage=model.response.usage if model.response is not None else Usage(),
                seconds=perf_counter() - asked,
            )

        async with self._limit:
            deadline = model.deadline = asyncio.get_running_loop().time() + self._limit_s
            question = classify(model, self._version.model, self._prompt, generated, expected, schema)
            try:
                value, choice, reason = await within(deadline, question)
            except DeadlineError:
                return told(0.0, error=TIMEOUT)
            except CallError as failure:
                if failure.kind is CallErrorKind.BUDGET:
                    return told(0.0, error=OVER_BUDGET)
                return told(0.0, error=f"LLM judge failed ({failure.kind}): {failure.message}")
            except (ValueError, KeyError, TypeError, AttributeError) as nonsense:
                what = f"{type(nonsense).__name__}: {nonsense}"
                return told(0.0, error=f"LLM judge gave no choice ({what}): {_excerpt(model)}")
        return told(value, choice=choice, reason=reason)


def open_judge(
    version: ModelVersion | None,
    cache_file: Path | None,
    *,
    life_s: float = LIFE_S,
    limit_s: float = LIMIT_S,
    prompt: JudgePrompt = SQL_MEANING,
    budget: Budget | None = None,
) -> Judge:
    """Opens the judge of a model version, or a `NoJudge` if none can be used.

    Args:
        version: the model version that judges; None: no judge. `DEFAULT_JUDGE` is a Claude model.
        cache_file: where judgements are kept across runs; None keeps them for this run only.
        life_s: how long they are kept, in seconds.
        limit_s: seconds for one question.
        prompt: the question.
        budget: what may be spent; None: no limit.

    Raises:
        UsageError: the provider is unknown or rejects the settings.
    """
    why_not = "none is named" if version is None else why_no_judge(version)
    if version is None or why_not:
        return NoJudge(why_not)
    provider = create(version, Environment())
    cache = JudgementCache(cache_file, life_s=life_s)
    return LLMJudge(provider, version, cache, prompt=prompt, limit_s=limit_s, budget=budget)


def _excerpt(model: AskedModel) -> str:
    """Returns the beginning of the model's answer, in one line."""
    text = model.response.text if model.response is not None else ""
    return " ".join(text.split())[:200] or "an empty answer"

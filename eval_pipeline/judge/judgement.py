"""The result of a judge, the protocol of judges, and why there is none."""

import logging
import os
from types import TracebackType
from typing import Protocol, Self

from eval_pipeline.asking.answers import Counters
from eval_pipeline.core.model import Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.values import value
from eval_pipeline.providers.registry import traits_of

_log = logging.getLogger(__name__)

TIMEOUT = "LLM judge timeout"
"""The error of a judgement that took too long."""
NO_JUDGE = "no judge configured"
"""The reason of a judgement when no judge is configured."""
OVER_BUDGET = "not asked: the budget of the judge is reached"
"""The error of a judgement that the judge's budget did not allow."""

DEFAULT_JUDGE = ModelVersion(
    name="judge", provider="anthropic", model="claude-sonnet-5-5", max_tokens=2048, concurrency=8, active=False
)
"""The judge used if no other is named."""


@value
class Judgement:
    """The judge's opinion on one answer.

    Attributes:
        value: 1.0 same meaning, 0.5 partly right, 0.0 wrong or the judge failed; None without a judge.
        choice: the judge's own word; may be empty.
        reason: the judge's explanation, or why there is no value.
        error: why the judge failed; None if it did not.
        trace: stack trace of the failure, for the log of metric errors.
        model: the judging model, as `provider/model`.
        prompt_version: version of the question.
        usage: tokens of this call; zero if answered from the cache.
        seconds: time from question to answer.
        cached: whether the answer came from the cache or from an equal question asked at the same time.
    """

    value: float | None
    choice: str = ""
    reason: str = ""
    error: str | None = None
    trace: str | None = None
    model: str = ""
    prompt_version: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0
    cached: bool = False


class Judge(Protocol):
    """Compares a generated query with an expected one; an async context manager.

    Attributes:
        counters: calls so far.
    """

    counters: Counters

    async def judge(self, generated: str, expected: str, schema: str | None = None) -> Judgement:
        """Asks whether both have the same meaning; `schema` is the DDL of the database."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class NoJudge:
    """Used if no judge is configured: gives no values and logs one warning."""

    def __init__(self, why: str = "") -> None:
        """Takes the reason for the log: what is missing."""
        self._why = why
        self._told = False
        self.counters = Counters()

    async def judge(self, generated: str, expected: str, schema: str | None = None) -> Judgement:
        """Returns a judgement without a value, for the reason NO_JUDGE."""
        if not self._told:
            self._told = True
            _log.warning("%s%s: answers stay without its verdict", NO_JUDGE, f" ({self._why})" * bool(self._why))
        return Judgement(None, reason=NO_JUDGE)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return


def why_no_judge(version: ModelVersion) -> str:
    """Returns why a model version cannot judge; empty if it can."""
    traits = traits_of(version.provider)
    if not traits.can_judge:
        return f"'{version.name}' is no model that could judge"
    variable = version.options.get("api_key_env", traits.key_variable)
    if isinstance(variable, str) and variable and not os.environ.get(variable, "").strip():
        return f"the environment variable {variable} is not set"
    return traits.lacks() or ""

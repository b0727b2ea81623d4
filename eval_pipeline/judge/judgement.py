"""What a judge says, and the protocol of judges."""

import logging
from types import TracebackType
from typing import Protocol, Self

from eval_pipeline.core.model import Usage
from eval_pipeline.core.values import value

_log = logging.getLogger(__name__)

TIMEOUT = "LLM judge timeout"
"""The error of a judgement that took too long."""
NO_JUDGE = "no judge configured"
"""The reason of a judgement where there is nobody to ask."""


@value
class Judgement:
    """What the judge said of one pair.

    Attributes:
        value: 1.0 same meaning, 0.5 partly right, 0.0 wrong, and 0.0 where the judge failed; None without a judge.
        choice: the judge's own word; empty where there is none.
        reason: why, in the judge's words; or why there is no value.
        error: why the judge failed, None where it did not.
        trace: stack trace of the failure, for the log of metric errors.
        model: who judged, as `provider/model`.
        prompt_version: of the question it was asked.
        usage: tokens of this call; none where the cache answered.
        seconds: from the question to the answer.
        cached: the cache, or an equal question under way, answered.
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
    """Compares a generated with an expected query; an async context manager."""

    async def judge(self, generated: str, expected: str, schema: str | None = None) -> Judgement:
        """Whether both mean the same; `schema` is the DDL of the database."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class NoJudge:
    """Stands where no judge is configured: everything stays without a value, and the log says so once."""

    def __init__(self, why: str = "") -> None:
        """Takes what is missing, for the log."""
        self._why = why
        self._told = False

    async def judge(self, generated: str, expected: str, schema: str | None = None) -> Judgement:
        """No value, for the reason NO_JUDGE."""
        if not self._told:
            self._told = True
            _log.warning("%s%s: query_correctness stays without a value", NO_JUDGE, f" ({self._why})" * bool(self._why))
        return Judgement(None, reason=NO_JUDGE)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

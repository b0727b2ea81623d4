"""Base classes of providers that run inside this process."""

import json
from abc import ABC, abstractmethod
from types import TracebackType
from typing import ClassVar, Self

from eval_pipeline.core.model import Response, ToolCall
from eval_pipeline.providers.base import Call, Traits


class InProcess(Traits):
    """A context manager without resources."""

    has_tools: ClassVar[bool] = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class Immediate(InProcess, ABC):
    """Answers without waiting, so that many calls can be made together."""

    @abstractmethod
    def answer(self, call: Call) -> Response:
        """Makes one try. Raises what `Provider.generate` raises; failures are never retried."""

    async def generate(self, call: Call) -> Response:
        """Returns `answer(call)`."""
        return self.answer(call)


def steps_taken(call: Call) -> int:
    """Returns how often the model has called tools in the conversation so far."""
    return sum(bool(message.calls) for message in call.prompt.messages)


def following(call: Call, script: str) -> tuple[str, tuple[ToolCall, ...]]:
    """Returns text and calls of an answer; if there are tools, the next call of a script.

    Args:
        call: the question.
        script: what the track offers as an answer; for one that acts, all its calls as JSON, a list of `name` and
            `arguments`.
    """
    if not call.prompt.tools:
        return script, ()
    step, calls = steps_taken(call), json.loads(script)
    if step >= len(calls):
        return "", ()
    return "", (ToolCall(f"call_{step}", calls[step]["name"], calls[step]["arguments"]),)


class StandIn(Immediate):
    """A provider that generates answers itself; no model is called and nothing is charged."""

    simulated: ClassVar[bool] = True
    pool: ClassVar[str | None] = None
    charged: ClassVar[bool] = False
    can_judge: ClassVar[bool] = False

"""Base classes of providers that run inside this process."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import ClassVar, Self

from eval_pipeline.core.model import Response
from eval_pipeline.providers.base import Call, Traits


class InProcess(Traits):
    """A context manager without resources."""

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


class StandIn(Immediate):
    """A provider that generates answers itself; no model is called and nothing is charged."""

    simulated: ClassVar[bool] = True
    pool: ClassVar[str | None] = None
    charged: ClassVar[bool] = False
    can_judge: ClassVar[bool] = False

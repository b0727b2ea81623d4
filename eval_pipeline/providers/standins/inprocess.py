"""What providers that need nothing opened share."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import ClassVar, Self

from eval_pipeline.core.model import Response
from eval_pipeline.providers.base import Call, Traits


class InProcess(Traits):
    """A context manager that holds nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class Immediate(InProcess, ABC):
    """Answers without waiting for anything, so that many calls can be asked together."""

    @abstractmethod
    def answer(self, call: Call) -> Response:
        """Asks once. Raises what `Provider.generate` raises; a failure is final, whatever it says of asking again."""

    async def generate(self, call: Call) -> Response:
        """As `answer`."""
        return self.answer(call)


class StandIn(Immediate):
    """Makes its answers up: nobody is asked, nobody charges."""

    simulated: ClassVar[bool] = True
    pool: ClassVar[str | None] = None
    charged: ClassVar[bool] = False
    can_judge: ClassVar[bool] = False

"""What providers that need nothing opened share."""

from types import TracebackType
from typing import Self


class InProcess:
    """A context manager that holds nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

"""An event loop whose time passes only while nothing else is to be done: a sleep of an hour takes no time."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class VirtualTime(asyncio.SelectorEventLoop):
    """For tasks that wait for each other and for the clock; not for threads, nor for other processes."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now = max(self.now, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine; a test that waits for what does not come fails after an hour of its own time."""

    async def bounded() -> T:
        async with asyncio.timeout(3600):
            return await work

    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        return runner.run(bounded())


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test whose whole body is a coroutine."""

    @wraps(test)
    def whole(*args: P.args, **kwargs: P.kwargs) -> None:
        run(test(*args, **kwargs))

    return whole

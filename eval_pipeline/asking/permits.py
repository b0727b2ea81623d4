"""Permission to pay: asked for before each call where several hosts share a journal."""

import asyncio
from collections import deque
from typing import Protocol

from eval_pipeline.core.errors import EvalError, StoreError
from eval_pipeline.core.system.days import since_boot


class Payer(Protocol):
    """Somebody who may pay as long as nobody else has taken their place, e.g. the holder of a lease."""

    @property
    def good_until(self) -> float:
        """Until when nobody else can have, by `since_boot`."""

    def reserve(self, calls: int, tokens: int, usd: float) -> None:
        """Reserves what calls may cost. Raises StoreError if somebody else has taken the place."""


class Permits:
    """Reserves what calls may cost; those who ask in one turn of the event loop share a transaction."""

    def __init__(self, payer: Payer) -> None:
        self._payer = payer
        self._waiting: deque[tuple[int, float, asyncio.Future[None]]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def ask(self, tokens: int, usd: float) -> None:
        """Returns when a call that may cost so much is allowed, and may be sent at once.

        Raises:
            StoreError: it is not; nothing must be paid.
        """
        await self._reserve(tokens, usd)
        while since_boot() >= self._payer.good_until:  # the process was stopped after the answer
            await self._reserve(0, 0.0)

    async def _reserve(self, tokens: int, usd: float) -> None:
        loop = asyncio.get_running_loop()
        place: asyncio.Future[None] = loop.create_future()
        self._waiting.append((tokens, usd, place))
        if self._task is None:
            self._task = loop.create_task(self._drain())
        await place

    async def _drain(self) -> None:
        await asyncio.sleep(0)
        while self._waiting:
            group, self._waiting = self._waiting, deque()
            tokens, usd = sum(one[0] for one in group), sum(one[1] for one in group)
            failed: Exception | None = None
            try:
                await asyncio.to_thread(self._payer.reserve, len(group), tokens, usd)
            except Exception as error:  # every waiter must be told, whatever the error
                failed = error
            for _, _, place in group:
                if place.done():
                    continue
                if failed is None:
                    place.set_result(None)
                else:  # one exception for each, since a shared one would collect everybody's traceback
                    kind = type(failed) if isinstance(failed, EvalError) else StoreError
                    place.set_exception(kind(str(failed)))
        self._task = None

"""A purse: what one of those who spend holds of the account that it shares with others."""

import asyncio
import threading
from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import Protocol
from uuid import uuid4

from eval_pipeline.asking.spending.ledger import Claim, Hold, Ledger
from eval_pipeline.core.covering.cost_limit import CostLimit
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.system.processes import worldwide_mark

LOOK_S = 0.5
"""How often a call that waits for those of other processes looks whether they have left money."""


class Meter(Protocol):
    """Shows what is spent, in US dollars, while calls are made."""

    def add(self, usd: float) -> None:
        """Adds what a call cost."""

    def close(self) -> None:
        """Shows nothing any more."""


class Purse:
    """Claims money for calls, one after the other, and gives back what they did not cost.

    A call that does not fit waits while others under the account are in flight, here or in processes that are alive.
    """

    def __init__(self, ledger: Ledger, limit: CostLimit, purpose: str, meter: Meter | None = None) -> None:
        """Claims nothing yet.

        Args:
            ledger: closed with the purse.
            limit: the account and its limit.
            purpose: what is spent on, by which what was refused is told.
            meter: closed with the purse.
        """
        self.limit = limit
        self._ledger, self._meter = ledger, meter
        self._held = Hold(f"{worldwide_mark()} {uuid4().hex}", purpose)
        self._returns = deque[float]()
        self._refused = 0
        self._closed = False
        self._turn, self._writing = asyncio.Lock(), threading.Lock()
        self._freed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def claim(self, usd: float) -> bool:
        """Whether a call that may cost so much may be made; then `settle` must be called for it.

        Raises:
            StoreError: the ledger cannot be used; nothing must be paid.
        """
        async with self._turn:
            while True:
                self._freed.clear()
                claiming = asyncio.ensure_future(asyncio.to_thread(self._claim, usd))
                try:
                    answer = await asyncio.shield(claiming)
                except asyncio.CancelledError:
                    with suppress(StoreError):
                        if await claiming is Claim.GRANTED:
                            self.settle(usd, 0.0)
                    raise
                if answer is not Claim.LATER:
                    return answer is Claim.GRANTED
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._freed.wait(), LOOK_S)

    def settle(self, claimed: float, spent: float) -> None:
        """Replaces what was claimed for a call by what it cost; others can have the rest a moment later."""
        self._returns.append(claimed - spent)
        if self._meter is not None:
            self._meter.add(spent)
        self._freed.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._give_back())

    def refuse(self) -> None:
        """Counts a call that was not made because of the limit."""
        self._refused += 1

    def close(self) -> None:
        """Writes what was spent and refused, and closes the ledger. Raises StoreError."""
        with self._writing:
            if self._closed:
                return
            self._closed = True
            if self._meter is not None:
                self._meter.close()
            self._ledger.put(self.limit.account, replace(self._settled(), in_flight=0))
        self._ledger.close()

    def _claim(self, usd: float) -> Claim:
        with self._writing:
            if self._closed:
                return Claim.REFUSED
            now = self._settled()
            then = replace(now, usd=now.usd + usd, in_flight=now.in_flight + 1)
            answer = self._ledger.claim(self.limit.account, self.limit.usd, now, then)
            if answer is Claim.GRANTED:
                self._held = then
            return answer

    async def _give_back(self) -> None:
        while self._returns and not self._closed:
            with suppress(StoreError):  # the next claim tells it; until then, others have less than they could
                await asyncio.to_thread(self._write)

    def _write(self) -> None:
        with self._writing:
            if not self._closed:
                self._ledger.put(self.limit.account, self._settled())

    def _settled(self) -> Hold:
        """Returns what is held after all that was given back. It is called by one thread at a time."""
        held = replace(self._held, refused=self._refused)
        while self._returns:
            held = replace(held, usd=held.usd - self._returns.popleft(), in_flight=held.in_flight - 1)
        self._held = held
        return held

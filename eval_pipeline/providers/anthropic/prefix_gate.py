"""Letting the first of several calls with one prefix go ahead, so that the others read it from the provider's cache.

A prefix can be read once the answer to the call that wrote it has begun. Calls sent together would each pay the write.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

PATIENCE_S = 10.0
LASTS_S = 280.0  # a cached prefix lives for five minutes after its last use


@dataclass(slots=True, eq=False)
class PlaceInLine:
    """A call's place among those with its prefix; `leads`: it writes the prefix, and the others wait for it."""

    leads: bool


@dataclass(slots=True)
class _Prefix:
    leader: PlaceInLine | None = None
    warm_until: float = float("-inf")
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class PrefixGate:
    """Knows which prefixes are cached and which are being written; belongs to one event loop."""

    def __init__(self, patience_s: float = PATIENCE_S, lasts_s: float = LASTS_S) -> None:
        """Nothing is cached yet.

        Args:
            patience_s: how long a call waits for others at most: paying for the prefix again is better than a stall.
            lasts_s: how long a prefix is taken to be cached after its last use.
        """
        self._patience_s = patience_s
        self._lasts_s = lasts_s
        self._prefixes: dict[str, _Prefix] = {}
        self._uncached_size = 0

    @asynccontextmanager
    async def turn(self, key: str, size: int) -> AsyncIterator[PlaceInLine]:
        """A call with a prefix, from when it may be sent until it is over.

        Args:
            key: of the prefix.
            size: of the prefix, in any measure that `not_cached` is told in too.
        """
        if size <= self._uncached_size:
            yield PlaceInLine(leads=False)
            return
        prefix = self._prefixes.setdefault(key, _Prefix())
        turn = await self._admitted(prefix)
        try:
            yield turn
        finally:
            if turn.leads and prefix.leader is turn:  # its answer has not begun: the next one tries
                prefix.leader = None
                prefix.changed.set()

    def begun(self, key: str, turn: PlaceInLine) -> None:
        """The answer to a call has begun: its prefix can be read."""
        prefix = self._prefixes.get(key)
        if prefix is None:
            return
        prefix.warm_until = asyncio.get_running_loop().time() + self._lasts_s
        if prefix.leader is turn:
            prefix.leader = None
            prefix.changed.set()

    def not_cached(self, size: int) -> None:
        """The provider did not cache a prefix of that size (it is too short): none of that size needs a wait."""
        self._uncached_size = max(self._uncached_size, size)

    async def _admitted(self, prefix: _Prefix) -> PlaceInLine:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_s
        while loop.time() >= prefix.warm_until:
            if prefix.leader is None:
                prefix.leader, prefix.changed = PlaceInLine(leads=True), asyncio.Event()
                return prefix.leader
            try:
                async with asyncio.timeout_at(deadline):
                    await prefix.changed.wait()
            except TimeoutError:
                break
        return PlaceInLine(leads=False)

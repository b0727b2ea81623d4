"""Sends the first of several calls with the same prompt prefix ahead, so that the others read it from the cache.

A prefix can be read from the cache once the answer to the call that wrote it has begun. Calls sent at the same time
would each pay for writing it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

PATIENCE_S = 10.0
LASTS_S = 280.0  # the API keeps a prefix for five minutes after its last use


@dataclass(slots=True, eq=False)
class PlaceInLine:
    """A call's place among the calls with its prefix; if `leads`, it writes the prefix and the others wait for it."""

    leads: bool


@dataclass(slots=True)
class _Prefix:
    leader: PlaceInLine | None = None
    warm_until: float = float("-inf")
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class PrefixGate:
    """Tracks which prefixes are cached and which are being written; belongs to one event loop."""

    def __init__(self, patience_s: float = PATIENCE_S, lasts_s: float = LASTS_S) -> None:
        """Starts with nothing cached.

        Args:
            patience_s: how long a call waits for others; after that, paying for the prefix again is better than
                stalling.
            lasts_s: how long a prefix is assumed to be cached after its last use.
        """
        self._patience_s = patience_s
        self._lasts_s = lasts_s
        self._prefixes: dict[str, _Prefix] = {}
        self._uncached_size = 0

    @asynccontextmanager
    async def turn(self, key: str, size: int) -> AsyncIterator[PlaceInLine]:
        """Waits until a call with a prefix may be sent; the block lasts until the call is finished.

        Args:
            key: identifies the prefix.
            size: size of the prefix, in the same unit as for `not_cached`.
        """
        if size <= self._uncached_size:
            yield PlaceInLine(leads=False)
            return
        prefix = self._prefixes.setdefault(key, _Prefix())
        turn = await self._admitted(prefix)
        try:
            yield turn
        finally:
            if turn.leads and prefix.leader is turn:  # its answer never began, so the next call leads
                prefix.leader = None
                prefix.changed.set()

    def begun(self, key: str, turn: PlaceInLine) -> None:
        """Records that the answer to a call has begun; from now on, other calls can read the prefix from the cache."""
        prefix = self._prefixes.get(key)
        if prefix is None:
            return
        prefix.warm_until = asyncio.get_running_loop().time() + self._lasts_s
        if prefix.leader is turn:
            prefix.leader = None
            prefix.changed.set()

    def not_cached(self, size: int) -> None:
        """Records that the provider did not cache a prefix of this size because it was too short.

        Calls with such prefixes need not wait.
        """
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

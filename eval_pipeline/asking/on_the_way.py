"""Calls on their way: sent, and not yet in the journal. They are paid for, so a run that ends waits for them."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_log = logging.getLogger(__name__)


class OnTheWay:
    """Counts the calls on their way; once a run ends, no further one starts."""

    def __init__(self) -> None:
        self._count = 0
        self._ending = False
        self._pausing = set[asyncio.Event]()
        self._none = asyncio.Event()

    @contextmanager
    def place(self) -> Iterator["Way"]:
        """Yields what notes when a call is sent; with the block, the call is back at the latest."""
        way = Way(self)
        try:
            yield way
        finally:
            way.back()

    async def landed(self, *, interrupted: bool = False) -> None:
        """Lets no further call start, and waits until those on their way are answered and written.

        Args:
            interrupted: whether a user waits for the end, who is told what for.
        """
        self._ending = True
        for pause in self._pausing:
            pause.set()
        if interrupted and self._count:
            text = "waiting for the %d calls on their way, which are paid for; Ctrl-C now stops at once"
            _log.warning(text, self._count)
        while self._count:
            self._none.clear()
            await self._none.wait()

    def counted(self, more: int) -> None:
        """Adds calls to those on their way; a negative number takes some away."""
        self._count += more
        if not self._count:
            self._none.set()

    def refuse(self) -> None:
        """Raises asyncio.CancelledError if the run ends."""
        if self._ending:
            raise asyncio.CancelledError

    async def ended(self, seconds: float) -> None:
        """Waits so long, or until the run ends."""
        over = asyncio.Event()
        self._pausing.add(over)
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), seconds)
        finally:
            self._pausing.discard(over)


class Way:
    """Tells `calls` from when to when one call is on its way; the call may be sent several times."""

    def __init__(self, calls: OnTheWay) -> None:
        self._calls, self._sent = calls, False

    def send(self) -> None:
        """Notes that the call is sent; to be called just before. Raises asyncio.CancelledError if the run ends."""
        self._calls.refuse()
        if not self._sent:
            self._sent = True
            self._calls.counted(1)

    def back(self) -> None:
        """Notes that nothing more comes of the call: it is answered, has failed, or is given up."""
        if self._sent:
            self._sent = False
            self._calls.counted(-1)

    async def pause(self, seconds: float) -> None:
        """Waits before the call is sent again; nobody waits for that. Raises asyncio.CancelledError if the run ends."""
        self.back()
        await self._calls.ended(seconds)
        self._calls.refuse()

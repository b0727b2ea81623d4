"""Calls on their way: sent, and not yet in the journal. They are paid for, so a run that ends waits for them."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_log = logging.getLogger(__name__)


class OnTheWay:
    """Counts the calls on their way; once a run ends, no further one starts."""

    def __init__(self) -> None:
        self._count = 0
        self._ending = False
        self._none = asyncio.Event()

    @contextmanager
    def place(self) -> Iterator[Callable[[], None]]:
        """Gives a function to be called just before a call is sent; it counts until the block is left.

        Raises:
            asyncio.CancelledError: by that function, if the run ends.
        """
        sent = False

        def send() -> None:
            nonlocal sent
            if self._ending:
                raise asyncio.CancelledError
            if not sent:
                sent, self._count = True, self._count + 1

        try:
            yield send
        finally:
            self._count -= sent
            if not self._count:
                self._none.set()

    async def landed(self, *, interrupted: bool = False) -> None:
        """Lets no further call start, and waits until those on their way are answered and written.

        Args:
            interrupted: whether a user waits for the end, who is told what for.
        """
        self._ending = True
        if interrupted and self._count:
            text = "waiting for the %d calls on their way, which are paid for; another Ctrl-C stops at once"
            _log.warning(text, self._count)
        while self._count:
            self._none.clear()
            await self._none.wait()

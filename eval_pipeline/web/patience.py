"""Ends connections whose other side dawdles: sends a request by and by, or does not read what it asked for.

uvicorn itself only ends those that are idle between two requests.
"""

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    _Protocol = Any
else:
    _Protocol = AutoHTTPProtocol


class _Limits(asyncio.Protocol):
    """Limits for the other side of a connection, in front of one of uvicorn's protocols.

    Attributes:
        sending_s: seconds in which a request has to be there, with its body.
        reading_s: seconds in which what is waiting to be sent has to be taken, so that little is left.
    """

    sending_s: ClassVar[float] = 30.0
    reading_s: ClassVar[float] = 120.0
    _sends: asyncio.TimerHandle | None = None
    _reads: asyncio.TimerHandle | None = None
    if TYPE_CHECKING:
        cycle: Any
        loop: asyncio.AbstractEventLoop
        transport: asyncio.Transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Waits for the first request."""
        super().connection_made(transport)
        self._look()

    def data_received(self, data: bytes) -> None:
        """Waits on, from when the request began, unless all of it is there."""
        super().data_received(data)
        self._look()

    def pause_writing(self) -> None:
        """Waits for the other side to read."""
        super().pause_writing()
        self._reads = self._reads or self.loop.call_later(self.reading_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Waits no more."""
        super().resume_writing()
        _cancel(self._reads)
        self._reads = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits for nothing any more."""
        for timer in (self._sends, self._reads):
            _cancel(timer)
        super().connection_lost(exc)

    def _look(self) -> None:
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and not cycle.more_body:
            _cancel(self._sends)
            self._sends = None
        elif self._sends is None and not self.transport.is_closing():
            self._sends = self.loop.call_later(self.sending_s, self.transport.abort)


class Impatient(_Limits, _Protocol):  # type: ignore[misc]  # one of two classes
    """For people at their browsers."""


class Strict(_Limits, H11Protocol):
    """For programs that nobody trusts; its parser also bounds the headers of a request."""


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()

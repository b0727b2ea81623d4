"""One HTTP client whose requests are spread over several pools of connections.

With each request, a pool looks at all of its connections, and asks the sockets of idle ones for their state: with 512
calls in flight, that took half of the CPU time of a call.
"""

from collections.abc import AsyncIterator, Callable
from math import ceil
from typing import Any

import httpx2

_A_POOL = 32
"""Calls in flight for which a pool is used."""


def http_client(kind: type[httpx2.AsyncClient], in_flight: int, **arguments: Any) -> httpx2.AsyncClient:
    """Returns a client for that many calls in flight.

    Args:
        kind: the class of the client, or of each client behind it.
        in_flight: calls in flight at most.
        arguments: those of the class; the clients share what `verify` has read.
    """
    pools = ceil(in_flight / _A_POOL)
    return kind(**arguments) if pools <= 1 else _Spread(kind, pools, arguments)


class _Spread(httpx2.AsyncClient):
    """Builds requests itself, and lets the least busy of its clients send them."""

    def __init__(self, kind: type[httpx2.AsyncClient], pools: int, arguments: dict[str, Any]) -> None:
        shared = arguments | {"cookies": httpx2.Cookies().jar}
        self._clients = [kind(**shared) for _ in range(pools)]
        self._busy = [0] * pools
        super().__init__(**shared, transport=httpx2.AsyncBaseTransport())  # sends nothing itself

    async def send(self, request: httpx2.Request, *, stream: bool = False, **how: Any) -> httpx2.Response:
        """Sends a request as its client would."""
        # Of clients that are equally busy the first one, so that few calls in flight use few connections.
        place = min(range(len(self._busy)), key=self._busy.__getitem__)
        self._busy[place] += 1
        try:
            response = await self._clients[place].send(request, stream=stream, **how)
        except BaseException:
            self._busy[place] -= 1
            raise
        if stream:
            response.stream = _Watched(response.stream, lambda: self._ended(place))
        else:
            self._ended(place)
        return response

    async def aclose(self) -> None:
        """Closes all connections."""
        await super().aclose()
        for client in self._clients:
            await client.aclose()

    def _ended(self, place: int) -> None:
        self._busy[place] -= 1


class _Watched(httpx2.AsyncByteStream):
    """The body of a response, which tells when it is closed for the first time."""

    def __init__(self, body: Any, closed: Callable[[], None]) -> None:
        self._body = body
        self._closed: Callable[[], None] | None = closed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._body:
            yield part

    async def aclose(self) -> None:
        closed, self._closed = self._closed, None
        if closed is not None:
            closed()
        await self._body.aclose()

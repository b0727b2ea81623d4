"""Serves HTTP on a listening socket for a program that is not trusted: connections, requests and bytes are bounded."""

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import uvicorn
from uvicorn.server import ServerState

from eval_pipeline.asking.proxy.relay import Outgoing, Reply
from eval_pipeline.web.patience import Strict

MOST_CONNECTIONS = 64
MOST_REQUESTS = 10_000
"""Requests of one program; whoever makes more is no longer heard."""
MOST_SENT = 32 * 1024 * 1024
"""Bytes of a request."""
MOST_HELD = 4 * MOST_SENT
"""Bytes of all requests that are being read or answered."""
MOST_IN_ALL = 64 * MOST_SENT
"""Bytes of all requests of one program."""
_IDLE_S = 60
_CLOSED = {"content-type": "application/json", "connection": "close"}
_silent = logging.getLogger(f"{__name__}.connections")
_silent.propagate = False
_silent.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Received:
    """A request; names of headers are in lower case, and the path has no query."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


class _TooMuchError(Exception):
    """A request that is not read to its end: the status, and a sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class SocketHost:
    """Serves in the running event loop."""

    def __init__(self, respond: Callable[[Received], Outgoing], refuse: Callable[[str, int, str], bytes]) -> None:
        """Serves nothing yet.

        Args:
            respond: begins to answer a request and returns where the answer will be.
            refuse: returns the body for a path, a status and a sentence.
        """
        self._respond, self._refuse = respond, refuse
        self._requests = self._held = self._in_all = 0
        self._state = ServerState()
        self._server: asyncio.Server | None = None

    async def open(self, listening: socket.socket) -> None:
        """Begins to serve."""
        config = uvicorn.Config(
            self._app,
            http=_Bounded,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            proxy_headers=False,
            timeout_keep_alive=_IDLE_S,
        )
        config.load()

        def connected() -> Any:
            return _Bounded(config=config, server_state=self._state, app_state={"is_over": self._is_over})

        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(connected, sock=listening, backlog=MOST_CONNECTIONS)

    async def close(self) -> None:
        """Closes all connections; who is being answered hears no more."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._state.connections):
            connection.transport.abort()
        await asyncio.gather(*self._state.tasks, return_exceptions=True)

    def _is_over(self) -> bool:
        return self._requests > MOST_REQUESTS or self._in_all > MOST_IN_ALL

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        self._requests += 1
        size = 0
        try:
            try:
                if self._is_over():
                    raise _TooMuchError(429, "too many requests of one attempt")
                body = bytearray()
                while (message := await receive())["type"] == "http.request":
                    body += message["body"]
                    size = self._counted(size, len(body))
                    if not message["more_body"]:
                        break
                else:
                    return  # it has hung up
                headers = {name.decode("latin-1"): told.decode("latin-1") for name, told in scope["headers"]}
                path, query = scope["path"], scope["query_string"].decode("latin-1")
                back = self._respond(Received(scope["method"], path, query, headers, bytes(body)))
            except _TooMuchError as error:
                back = Outgoing()
                back.begin(Reply(error.status, _CLOSED, self._refuse(scope["path"], error.status, str(error))))
                back.end()
            await _send_back(back, receive, send)
        finally:
            self._held -= size

    def _counted(self, before: int, now: int) -> int:
        """Counts the bytes of a request that are held; returns them."""
        if now > MOST_SENT:
            raise _TooMuchError(413, f"the request has more than {MOST_SENT // 2**20} MiB")
        if self._held + now - before > MOST_HELD:
            raise _TooMuchError(429, "too many long requests at once")
        self._held += now - before
        self._in_all += now - before
        return now


class _Bounded(Strict):
    """A connection of a program that nobody trusts; what it does wrong fills no log."""

    reading_s: ClassVar[float] = 600.0

    def __init__(self, **told: Any) -> None:
        super().__init__(**told)
        self.logger = self.access_logger = _silent
        self.access_log = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Ends it at once if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS or self.app_state["is_over"]():
            transport.abort()


async def _send_back(back: Outgoing, receive: Any, send: Any) -> None:
    """Sends an answer as it comes; tells `back` if the program hangs up before its end."""
    gone = asyncio.ensure_future(receive())
    gone.add_done_callback(lambda done: None if done.cancelled() else back.hung_up())
    async for part in back.parts():
        body = part
        if isinstance(part, Reply):
            headers = [(name.encode("latin-1"), told.encode("latin-1")) for name, told in part.headers.items()]
            await send({"type": "http.response.start", "status": part.status, "headers": headers})
            body = part.body
        await send({"type": "http.response.body", "body": body, "more_body": True})
    gone.cancel()
    await send({"type": "http.response.body", "body": b"", "more_body": False})

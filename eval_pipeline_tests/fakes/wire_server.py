"""An endpoint that answers each request with the next of its replies, or with what a function makes, byte by byte.

with WireServer([Sent(b"{…}"), Sent(stream, events=True, pieces=7)]) as server: … server.asked
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from eval_pipeline_tests.fakes.http_socket import Connection, Request, SocketServer


@dataclass(slots=True)
class Sent:
    """A reply.

    Attributes:
        pieces: bytes of each piece of a stream; 0: all at once.
        cut_at: bytes after which the connection ends.
        held: the bytes from `hold_at` on are sent when this is set.
    """

    body: bytes
    status: int = 200
    events: bool = False
    pieces: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    cut_at: int | None = None
    held: threading.Event | None = None
    hold_at: int = 0


class WireServer(SocketServer):
    """The endpoint; without a reply left it fails, as it was asked too often."""

    def __init__(self, replies: Sequence[Sent] | Callable[[Request], Sent] = ()) -> None:
        super().__init__()
        self._reply = replies if callable(replies) else None
        self.replies = [] if callable(replies) else list(replies)
        self.asked: list[Request] = []
        self.in_flight = self.most_in_flight = 0

    async def handle(self, request: Request, connection: Connection) -> None:
        self.asked.append(request)
        reply = self.replies.pop(0) if self.replies else Sent(b'{"error": {"message": "asked too often"}}', 500)
        reply = self._reply(request) if self._reply else reply
        self.in_flight += 1
        self.most_in_flight = max(self.in_flight, self.most_in_flight)
        try:
            await self._send(reply, connection)
        finally:
            self.in_flight -= 1

    async def _send(self, reply: Sent, connection: Connection) -> None:
        kind = "text/event-stream" if reply.events else "application/json"
        headers = {"content-type": kind, **reply.headers}
        if not reply.events:
            await _until(reply.held)
            await connection.reply(reply.status, reply.body, headers, cut_at=reply.cut_at)
            return
        await connection.start(reply.status, headers)
        await _in_pieces(reply.body[: reply.hold_at], reply.pieces, connection)
        await _until(reply.held)
        await _in_pieces(reply.body[reply.hold_at : reply.cut_at], reply.pieces, connection)
        if reply.cut_at is None:
            await connection.finish()
        else:
            connection.close()


async def _in_pieces(body: bytes, size: int, connection: Connection) -> None:
    for begin in range(0, len(body), size or len(body) or 1):
        await connection.send(body[begin : begin + (size or len(body))])


async def _until(held: threading.Event | None) -> None:
    while held is not None and not held.is_set():
        await asyncio.sleep(0.002)

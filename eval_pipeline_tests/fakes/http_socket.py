"""A small HTTP/1.1 server on a real socket, in a thread, that can also misbehave below HTTP: for fakes of services.

Replies may be cut off, reset, sent in pieces or never sent, which servers written to be correct do not offer.
"""

import asyncio
import json
import socket
import ssl
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

_LONGEST_HEAD = 64 * 1024
_START_S = 10.0


@dataclass(frozen=True, slots=True)
class Request:
    """One request; names of headers are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


class Connection:
    """The server's side of a connection; a reply is whole (`reply`) or in pieces (`start`, `send`, `finish`)."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @property
    def open(self) -> bool:
        return not self._writer.is_closing()

    async def read(self) -> Request | None:
        """The next request, or None where the client has gone."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            method, target, _ = first.split(" ")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
            }
            body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        url = urlsplit(target)
        return Request(method, unquote(url.path), dict(parse_qsl(url.query)), headers, body)

    async def reply(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, *, cut_at: int | None = None
    ) -> None:
        """A whole reply, or where `cut_at` says so only that many bytes of the body it promises."""
        await self._write(self._head(status, {"content-length": str(len(body)), **(headers or {})}) + body[:cut_at])
        if cut_at is not None:
            self.close()

    async def reply_json(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        await self.reply(status, json.dumps(value).encode(), {"content-type": "application/json", **(headers or {})})

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        await self._write(self._head(status, {"transfer-encoding": "chunked", **headers}))

    async def send(self, piece: bytes) -> None:
        await self._write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")

    async def finish(self) -> None:
        """The end of a reply in pieces; without it the client sees a reply that broke."""
        await self._write(b"0\r\n\r\n")

    def close(self) -> None:
        """Closes in order, whatever of a reply has been sent."""
        self._writer.close()

    def reset(self) -> None:
        """Drops the connection without a farewell (RST)."""
        endpoint = self._writer.get_extra_info("socket")
        endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def _head(self, status: int, headers: Mapping[str, str]) -> bytes:
        phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Overloaded"
        lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


class SocketServer(ABC):
    """Serves on loopback while the context lasts, from a thread of its own; `connections` counts those opened."""

    def __init__(self, port: int = 0) -> None:
        """Port 0 takes a free one."""
        self.url, self.host = "", "127.0.0.1"
        self.tls: ssl.SSLContext | None = None
        self.connections = 0
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)
        self._ready = threading.Event()
        self._stopping: asyncio.Event | None = None
        self._handlers: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def handle(self, request: Request, connection: Connection) -> None:
        """Answers, or does not."""

    def start(self) -> None:
        self._thread.start()
        if not self._ready.wait(_START_S) or not self.url:
            raise RuntimeError("the fake server did not start")

    def stop(self) -> None:
        """Ends it with every connection, also those whose reply hangs."""
        if self._thread.is_alive() and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._ready.set()
            self._loop.close()

    async def _serve(self) -> None:
        self._stopping = asyncio.Event()
        server = await asyncio.start_server(
            self._connected, self.host, self._port, backlog=1024, limit=_LONGEST_HEAD, ssl=self.tls
        )
        self.url = f"http{'s' if self.tls else ''}://{self.host}:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stopping.wait()
        server.close()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        self.connections += 1
        connection = Connection(reader, writer)
        try:
            while connection.open and (request := await connection.read()) is not None:
                await self.handle(request, connection)
        except ConnectionError:  # the client has gone in the middle of a reply
            pass
        except asyncio.CancelledError:  # only `stop` cancels; the streams' own callback would print it
            pass
        finally:
            writer.close()
            self._handlers.discard(task)

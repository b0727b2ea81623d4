"""A client of PostgreSQL's server, in its simple protocol over a Unix socket. Standard library only.

Format: https://www.postgresql.org/docs/current/protocol-message-formats.html
"""

import base64
import json
import math
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_VERSION = 196608  # 3.0
_HEAD = struct.Struct("!cI")
_MOST_MESSAGE = 1 << 28
_ENDED = "57P02"
_NOTHING = b"no rows can be sent here\0"
_INTEGERS, _NUMBERS = frozenset({20, 21, 23, 26}), frozenset({700, 701, 1700})
_BOOLEAN, _BYTES, _JSON = 16, 17, frozenset({114, 3802})

GivenRow = list[str | None]


class PostgresError(Exception):
    """The server refuses something; the arguments are the message and the SQLSTATE."""


class GivenRows:
    """What a statement gave.

    Attributes:
        names, types: of the columns; empty if it gave none.
        told: what it says of itself, such as `UPDATE 3`.
    """

    def __init__(self) -> None:
        """Nothing yet."""
        self.names: list[str] = []
        self.types: list[int] = []
        self.told = ""


class PostgresClient:
    """A session."""

    def __init__(self, path: str, user: str, database: str) -> None:
        """Opens it. Raises a PostgresError, or an OSError where there is no server."""
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(path)
            self._file = self._socket.makefile("rb", buffering=1 << 16)
            words = [*_pair("user", user), *_pair("database", database), *_pair("client_encoding", "UTF8"), b"\0"]
            text = struct.pack("!I", _VERSION) + b"".join(words)
            self._socket.sendall(struct.pack("!I", len(text) + 4) + text)
            for kind, body in self._messages():
                if kind == b"R" and struct.unpack_from("!I", body)[0] != 0:
                    raise PostgresError("the server wants a password", "28000")
        except BaseException:
            self._socket.close()
            raise

    def close(self) -> None:
        """Ends the session."""
        self._socket.close()

    def run(self, query: str, take: Callable[[GivenRows, Iterator[GivenRow]], None]) -> None:
        """Runs statements in one transaction, and has the rows of each taken. Raises a PostgresError."""
        self._socket.sendall(_HEAD.pack(b"Q", len(text := query.encode() + b"\0") + 4) + text)
        messages = self._messages()
        while (rows := _begun(messages)) is not None:
            found = self._rows(rows, messages)
            take(rows, found)
            for _ in found:
                continue

    def _rows(self, rows: GivenRows, messages: Iterator[tuple[bytes, bytes]]) -> Iterator[GivenRow]:
        if rows.told:  # it gave none
            return
        for kind, body in messages:
            match kind:
                case b"D":
                    yield _cells(body)
                case b"d":  # a line of COPY ... TO STDOUT
                    yield [body.decode("utf-8", "replace").rstrip("\n")]
                case b"C":
                    rows.told = _text(body)
                    return

    def _messages(self) -> Iterator[tuple[bytes, bytes]]:
        """Yields messages until the server is ready again; then raises what went wrong."""
        problem: PostgresError | None = None
        while True:
            head = self._file.read(_HEAD.size)
            kind, length = _HEAD.unpack(head) if len(head) == _HEAD.size else (b"", 4)
            if length > _MOST_MESSAGE:
                raise MemoryError("a row has more than 256 MiB")
            body = self._file.read(length - 4)
            if not kind or len(body) < length - 4:
                raise problem or PostgresError("the server has ended, as it had no room left or too much to do", _ENDED)
            if kind == b"E":
                problem = problem or _error(body)
            elif kind == b"G":  # COPY ... FROM STDIN
                self._socket.sendall(_HEAD.pack(b"f", 4 + len(_NOTHING)) + _NOTHING)
            elif kind == b"Z":
                if problem is not None:
                    raise problem
                return
            else:
                yield kind, body


def _begun(messages: Iterator[tuple[bytes, bytes]]) -> GivenRows | None:
    """Returns the next statement that gave something, None if there is none."""
    rows = GivenRows()
    for kind, body in messages:
        match kind:
            case b"T":
                rows.names, rows.types = _columns(body)
                return rows
            case b"H":
                rows.names, rows.types = ["line"], [25]
                return rows
            case b"C":
                rows.told = _text(body)
                return rows
    return None


def _pair(name: str, value: str) -> tuple[bytes, bytes]:
    return name.encode() + b"\0", value.encode() + b"\0"


def _text(body: bytes) -> str:
    return body.split(b"\0", 1)[0].decode("utf-8", "replace")


def _error(body: bytes) -> PostgresError:
    fields = {part[:1]: part[1:].decode("utf-8", "replace") for part in body.split(b"\0") if part}
    message = fields.get(b"M", "unknown error")
    more = [f"{word}: {fields[code]}" for code, word in ((b"D", "detail"), (b"H", "hint")) if code in fields]
    return PostgresError("; ".join([message, *more]), fields.get(b"C", ""))


def _columns(body: bytes) -> tuple[list[str], list[int]]:
    (count,), place = struct.unpack_from("!H", body), 2
    names, types = [], []
    for _ in range(count):
        end = body.index(b"\0", place)
        names.append(body[place:end].decode("utf-8", "replace"))
        types.append(struct.unpack_from("!I", body, end + 7)[0])
        place = end + 19
    return names, types


def _cells(body: bytes) -> GivenRow:
    (count,), place = struct.unpack_from("!H", body), 2
    cells: GivenRow = []
    for _ in range(count):
        (length,) = struct.unpack_from("!i", body, place)
        place += 4
        cells.append(None if length < 0 else body[place : place + length].decode("utf-8", "replace"))
        place += max(length, 0)
    return cells


def plain(cell: str | None, kind: int) -> Any:
    """Returns a cell as plain data, by its column's type."""
    if cell is None:
        return None
    if kind == _BOOLEAN:
        return cell == "t"
    if kind in _INTEGERS:
        return int(cell)
    if kind in _NUMBERS:
        number = float(cell)
        return number if math.isfinite(number) else {"float": repr(number)}
    if kind == _BYTES and cell.startswith("\\x"):
        return {"bytes": base64.b64encode(bytes.fromhex(cell[2:])).decode()}
    return json.loads(cell) if kind in _JSON else cell


def plain_rows(rows: Iterator[GivenRow], types: Sequence[int]) -> Iterator[list[Any]]:
    """Yields rows as plain data."""
    for row in rows:
        yield [plain(cell, kind) for cell, kind in zip(row, types, strict=True)]

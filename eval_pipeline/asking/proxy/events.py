"""Streams of server-sent events as bytes: whole events, however they were cut in transit."""

import json
import re
from collections.abc import Iterator
from typing import Any

_END = re.compile(rb"\r?\n\r?\n")
_LONGEST_END = 4
_DATA = re.compile(rb"(?:^|\n)data:[ ]?([^\r\n]*)")
_DONE = b"[DONE]"


class Events:
    """Puts pieces of a stream together to whole events."""

    def __init__(self) -> None:
        """Nothing has come yet."""
        self._rest = bytearray()
        self._seen = 0

    def add(self, piece: bytes) -> Iterator[bytes]:
        """Yields the events that are whole with this piece, each with the empty line that ends it."""
        self._rest += piece
        begin = 0
        for end in _END.finditer(self._rest, max(0, self._seen + 1 - _LONGEST_END)):
            yield bytes(self._rest[begin : end.end()])
            begin = end.end()
        del self._rest[:begin]
        self._seen = len(self._rest)

    def rest(self) -> bytes:
        """Returns what has come after the last whole event."""
        return bytes(self._rest)


def data_of(event: bytes) -> Any:
    """Returns the data of an event as decoded JSON; None if it has none, or `[DONE]`. Raises ValueError."""
    text = b"\n".join(_DATA.findall(event)).strip()
    return None if text in (b"", _DONE) else json.loads(text)


def is_done(event: bytes) -> bool:
    """Whether an event is the `[DONE]` at the end of a stream."""
    return _DONE in event and b"".join(_DATA.findall(event)).strip() == _DONE

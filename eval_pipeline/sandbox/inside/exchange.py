"""Messages between a model's process and the one with the tests: a length of four bytes, then JSON."""

import json
import os
import select
import struct
from collections.abc import Callable
from typing import Any

_HEAD = struct.Struct("<I")
_WATCH_S = 0.02


class ClosedError(Exception):
    """The other process has ended, or sent something that is not a message."""


class Exchange:
    """One end of a pair of pipes."""

    def __init__(self, reading: int, writing: int, most_bytes: int, watch: Callable[[], object] | None = None) -> None:
        """Takes the descriptors.

        Args:
            reading: the descriptor to read messages from.
            writing: the descriptor to write messages to.
            most_bytes: maximum number of bytes in a received message.
            watch: called again and again while the other end lets this one wait; it may raise.
        """
        self._reading, self._writing, self._most = reading, writing, most_bytes
        self._watch = watch
        if watch is not None:
            os.set_blocking(writing, False)

    def send(self, message: Any) -> None:
        """Sends a message. Raises a ClosedError if nobody reads any more."""
        text = json.dumps(message).encode()
        view = memoryview(_HEAD.pack(len(text)) + text)
        try:
            while view:
                self._wait([], [self._writing])
                view = view[os.write(self._writing, view) :]
        except OSError as error:
            raise ClosedError("the process of the code has ended") from error

    def receive(self) -> Any:
        """Returns the next message. Raises a ClosedError if there is none, or if it is too long or not JSON."""
        (length,) = _HEAD.unpack(self._take(_HEAD.size))
        if length > self._most:
            raise ClosedError(f"the code sent a value of more than {self._most:,} bytes")
        try:
            return json.loads(self._take(length))
        except (ValueError, RecursionError) as error:
            raise ClosedError("the code sent what is no message") from error

    def _take(self, count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            self._wait([self._reading], [])
            part = os.read(self._reading, count - len(parts))
            if not part:
                raise ClosedError("the process of the code has ended")
            parts += part
        return bytes(parts)

    def close(self) -> None:
        """Closes both descriptors."""
        os.close(self._reading)
        os.close(self._writing)

    def _wait(self, reading: list[int], writing: list[int]) -> None:
        if self._watch is not None:
            while not any(select.select(reading, writing, [], _WATCH_S)):
                self._watch()

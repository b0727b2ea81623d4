"""Messages between a model's process and the one with the tests: a length of four bytes, then JSON."""

import json
import os
import struct
from typing import Any

_HEAD = struct.Struct("<I")


class ClosedError(Exception):
    """The other process has ended, or sent something that is not a message."""


class Exchange:
    """One end of a pair of pipes."""

    def __init__(self, reading: int, writing: int, most_bytes: int) -> None:
        """Takes the descriptors.

        Args:
            reading: the descriptor to read messages from.
            writing: the descriptor to write messages to.
            most_bytes: maximum number of bytes in a received message.
        """
        self._reading, self._writing, self._most = reading, writing, most_bytes

    def send(self, message: Any) -> None:
        """Sends a message. Raises a ClosedError if nobody reads any more."""
        text = json.dumps(message).encode()
        view = memoryview(_HEAD.pack(len(text)) + text)
        try:
            while view:
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
            part = os.read(self._reading, count - len(parts))
            if not part:
                raise ClosedError("the process of the code has ended")
            parts += part
        return bytes(parts)

"""Messages between a child process and its parent: JSON with a length prefix; SQL's values are written as JSON.

What comes from the child is parsed as data and never as code, whatever a query did to the child.
"""

import json
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

HEADER_BYTES = 8
LARGEST_MESSAGE = 512 * 1024 * 1024

_WRITERS: dict[type, tuple[str, Callable[[Any], Any]]] = {
    datetime: ("$timestamp", datetime.isoformat),
    date: ("$date", date.isoformat),
    time: ("$time", time.isoformat),
    timedelta: ("$interval", lambda value: [value.days, value.seconds, value.microseconds]),
    Decimal: ("$decimal", str),
    bytes: ("$bytes", bytes.hex),
    UUID: ("$uuid", str),
}
_READERS: dict[str, Callable[[Any], Any]] = {
    "$timestamp": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$time": time.fromisoformat,
    "$interval": lambda parts: timedelta(*parts),
    "$decimal": Decimal,
    "$bytes": bytes.fromhex,
    "$uuid": UUID,
    "$map": lambda pairs: {_hashable(key): item for key, item in pairs},
}


def pack(message: Any) -> bytes:
    """Returns a message with its length prefix."""
    body = json.dumps(message, default=_written, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return len(body).to_bytes(HEADER_BYTES, "big") + body


def unpack(body: bytes) -> Any:
    """Reads a message without its length prefix. Raises a ValueError if it is malformed."""
    return json.loads(body.decode("utf-8", "surrogatepass"), object_hook=_read)


def body_length(header: bytes) -> int:
    """Returns how many bytes follow a header. Raises a ValueError if they are more than a valid message can have."""
    length = int.from_bytes(header, "big")
    if length > LARGEST_MESSAGE:
        raise ValueError(f"a message of {length:,} bytes is too large")
    return length


def row_to_wire(row: tuple[Any, ...]) -> list[Any]:
    """Returns a row whose structs cannot be confused with one of the forms above."""
    return [cell if isinstance(cell, _PLAIN) else _nested(cell) for cell in row]


_PLAIN = (str, int, float, type(None))


def _nested(cell: Any) -> Any:
    if isinstance(cell, dict):
        return {"$map": [[_nested(key), _nested(item)] for key, item in cell.items()]}
    if isinstance(cell, list | tuple):
        return [_nested(item) for item in cell]
    return cell


def _written(value: Any) -> Any:
    for kind in type(value).__mro__:
        if kind in _WRITERS:
            name, write = _WRITERS[kind]
            return {name: write(value)}
    return str(value)


def _read(found: dict[str, Any]) -> Any:
    if len(found) == 1:
        name, inner = next(iter(found.items()))
        if name in _READERS:
            return _READERS[name](inner)
    return found


def _hashable(key: Any) -> Any:
    return key if isinstance(key, _PLAIN) else str(key)

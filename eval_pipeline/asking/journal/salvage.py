"""Recovers every undamaged row from a damaged journal.

SQLite gives up on a table at the first damaged page on the path to a row. Rows are stored in leaf pages, however, which
can be read directly, in the published file format (https://www.sqlite.org/fileformat2.html, sections 1.5, 1.6, 2.1 and
4). A row is accepted if its checksum matches or, if it has no checksum, if it decodes as a response.
"""

import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from eval_pipeline.asking.journal.codec import decode_response
from eval_pipeline.asking.journal.rows import is_whole

_PAGE = 4096
"""Page size in bytes; SQLite's default."""
_LEAF = 0x0D
_FILE_HEADER = 100
_WAL_HEADER, _FRAME_HEADER = 32, 24
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Sizes in bytes of integers, by serial type."""


class Saved(NamedTuple):
    """An undamaged row of the journal; `written_at` is a Unix time in seconds."""

    key: str
    body: bytes
    written_at: int


def whole_rows(path: Path) -> Iterator[Saved]:
    """Yields the undamaged rows of a journal and its write-ahead log, each key once."""
    pages, seen = _pages(path), set[str]()
    for number, page in sorted(pages.items()):
        for row in _rows(page, _FILE_HEADER if number == 1 else 0, pages):
            if row.key not in seen:
                seen.add(row.key)
                yield row


def _pages(path: Path) -> Mapping[int, bytes]:
    """Returns the newest version of each page, by page number."""
    data = path.read_bytes()
    pages = {start // _PAGE + 1: data[start : start + _PAGE] for start in range(0, len(data), _PAGE)}
    log = path.with_name(f"{path.name}-wal")
    with suppress(FileNotFoundError):
        frames = log.read_bytes()
        salt = frames[16:24]
        for start in range(_WAL_HEADER, len(frames), _FRAME_HEADER + _PAGE):
            header = frames[start : start + _FRAME_HEADER]
            if header[8:16] == salt:  # otherwise a leftover from before the log was restarted
                (number,) = struct.unpack(">I", header[:4])
                pages[number] = frames[start + _FRAME_HEADER : start + _FRAME_HEADER + _PAGE]
    return pages


def _rows(page: bytes, start: int, pages: Mapping[int, bytes]) -> Iterator[Saved]:
    if len(page) < _PAGE or page[start] != _LEAF:
        return
    (cells,) = struct.unpack_from(">H", page, start + 3)
    for index in range(min(cells, (_PAGE - start - 8) // 2)):
        (place,) = struct.unpack_from(">H", page, start + 8 + 2 * index)
        # Offsets read from a damaged page may point anywhere.
        with suppress(IndexError, KeyError, ValueError, struct.error, UnicodeDecodeError):
            yield _row(_payload(page, place, pages))


def _payload(page: bytes, place: int, pages: Mapping[int, bytes]) -> bytes:
    """Returns the content of a cell; parts that do not fit into the page are in a chain of overflow pages."""
    size, place = _varint(page, place)
    _, place = _varint(page, place)
    most = _PAGE - 35
    if size <= most:
        return page[place : place + size]
    least = (_PAGE - 12) * 32 // 255 - 23
    local = least + (size - least) % (_PAGE - 4)
    local = local if local <= most else least
    parts, left = [page[place : place + local]], size - local
    (following,) = struct.unpack_from(">I", page, place + local)
    while left > 0:
        overflow = pages[following]
        (following,) = struct.unpack_from(">I", overflow)
        parts.append(overflow[4 : 4 + min(left, _PAGE - 4)])
        left -= len(parts[-1])
    return b"".join(parts)


def _row(payload: bytes) -> Saved:
    """Parses a record into a row.

    Raises:
        ValueError: the row belongs to another table or is damaged.
    """
    end, place = _varint(payload, 0)
    types = []
    while place < end:
        kind, place = _varint(payload, place)
        types.append(kind)
    values = []
    for kind in types:
        value, place = _value(payload, place, kind)
        values.append(value)
    key, body, written_at, digest = (*values, None) if len(values) == 3 else values
    if not is_whole(key, body, digest) or not isinstance(written_at, int):
        raise ValueError("not a whole row")
    assert isinstance(key, str) and isinstance(body, bytes)
    if digest is None:
        decode_response(body)
    return Saved(key, body, written_at)


def _value(payload: bytes, place: int, kind: int) -> tuple[object, int]:
    """Returns a value of the given serial type and the offset of its end."""
    if kind == 0:
        return None, place
    if kind in {8, 9}:
        return kind - 8, place
    if kind in _INTEGERS:
        end = place + _INTEGERS[kind]
        return int.from_bytes(payload[place:end], "big", signed=True), end
    if kind < 12:
        raise ValueError("no value of the journal")
    end = place + (kind - 12) // 2
    if end > len(payload):
        raise ValueError("longer than the record")
    return (payload[place:end].decode() if kind % 2 else payload[place:end]), end


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """Returns a variable-length integer and the offset of its end."""
    value = 0
    for _ in range(8):
        byte = data[place]
        place += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place
    return value << 8 | data[place], place + 1

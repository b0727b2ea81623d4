"""Finds the messages in a file, which may be plain, compressed with gzip, or a zip archive."""

import gzip
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from eval_pipeline.core.foreign import MOST_BYTES, UnreadableFileError, read_bytes

PACKED = (".gz", ".zip")
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"


def messages_in(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yields name and content of each message in a file; packing is recognised by content, not by file name.

    Raises:
        OSError: the file cannot be read, is empty, or is too large, packed or unpacked.
        zipfile.BadZipFile: the archive is damaged.
    """
    content = read_bytes(path)
    if content.startswith(_ZIP):
        with zipfile.ZipFile(BytesIO(content)) as archive:
            left = MOST_BYTES
            for member in archive.infolist():
                if not member.is_dir():
                    with archive.open(member) as file:
                        unpacked = file.read(left + 1)
                    left -= len(unpacked)
                    yield f"{path}/{member.filename}", _whole(unpacked, left)
    elif content.startswith(_GZIP):
        with gzip.GzipFile(fileobj=BytesIO(content)) as file:
            unpacked = file.read(MOST_BYTES + 1)
        yield str(path), _whole(unpacked, MOST_BYTES - len(unpacked))
    else:
        yield str(path), _whole(content, 0)


def _whole(content: bytes, left: int) -> bytes:
    if left < 0:
        raise UnreadableFileError(f"unpacks to more than {MOST_BYTES:,} bytes")
    if not content.strip():
        raise UnreadableFileError("is empty")
    return content

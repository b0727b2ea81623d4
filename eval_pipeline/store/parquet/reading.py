"""Reads the record's Parquet files and their headers; data are verified before use."""

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from eval_pipeline.core.errors import DamagedFileError

SEAL = "footer_digest"
"""Key of the seal in the footer's metadata."""
_MARK = "footer-sha256:"
BLANK = _MARK + "0" * 64
"""Placeholder for the seal until the footer is complete."""
_PATTERN = re.compile(_MARK.encode() + rb"([0-9a-f]{64})")


def sealed(footer: bytes) -> bytes:
    """Returns the footer with its seal filled in.

    Args:
        footer: contains `BLANK` exactly once; includes the length and the magic bytes at the end.
    """
    place = footer.index(BLANK.encode()) + len(_MARK)
    digest = hashlib.sha256(footer).hexdigest().encode()
    return footer[:place] + digest + footer[place + len(digest) :]


def is_sealed(footer: bytes) -> bool | None:
    """Whether a footer is unchanged since it was written; None if it has no seal, as in files written by 0.1.0."""
    found = list(_PATTERN.finditer(footer))
    if not found and SEAL.encode() not in footer:
        return None
    if len(found) != 1:
        return False
    start, end = found[0].span(1)
    blank = footer[:start] + b"0" * (end - start) + footer[end:]
    return hashlib.sha256(blank).hexdigest().encode() == found[0][1]


_CHUNK = 1 << 20
_MAGIC = b"PAR1"
_TAIL = 8
"""Bytes at the end of a Parquet file: the length of the footer, and the magic bytes."""
_OTHER_BYTES = "its bytes are not those that were written"


@dataclass(frozen=True, slots=True)
class Header:
    """The metadata in the footer of a record file.

    Attributes:
        schema_version: version of the table when the file was written.
        schema_hash: hash of the file's columns.
        made_from: hashes of the inputs that the rows were computed from, by name.
        content_hash: SHA-256 over schema and data pages, cut to 32 hexadecimal digits; equal data in equal chunks have
            equal hashes.
        rows: number of rows.
        key: values of the key columns, as text.
        run_id: run that made these rows; empty if unknown.
        sealed: whether a digest protects the footer; only files written by 0.1.0 lack it.
        size: bytes of the rows before they are compressed.
    """

    schema_version: int
    schema_hash: str
    made_from: Mapping[str, str]
    content_hash: str
    rows: int
    key: Mapping[str, str]
    sealed: bool
    run_id: str = ""
    size: int = 0


def damaged(path: Path, found: object) -> DamagedFileError:
    """Returns the error for a damaged file of the record."""
    return DamagedFileError(f"{path} is damaged ({_first_line(found)}); `eval-pipeline doctor --repair` makes it again")


def _first_line(found: object) -> str:
    return (str(found).splitlines() or [type(found).__name__])[0].strip().rstrip(".")


def read_header(path: Path) -> Header | None:
    """Reads the header from the file's footer; returns None if the file does not exist. Cached until the file changes.

    Raises:
        StoreError: the footer was changed after writing.
    """
    try:
        return _header(*_state(path))
    except FileNotFoundError:
        return None
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, error) from error


_State = tuple[Path, int, int, int]


def _state(path: Path) -> _State:
    """Returns what distinguishes a file from one that replaced it."""
    status = path.stat()
    return path, status.st_ino, status.st_size, status.st_mtime_ns


_MOST_HEADERS = 16_384
"""Headers kept, 2 KiB each: those of some 500 suites, which a run goes through several times."""


@lru_cache(maxsize=_MOST_HEADERS)
def _header(path: Path, inode: int, size: int, changed: int) -> Header:
    with path.open("rb") as file:
        file.seek(_data_end(file))
        footer = file.read()
    seal = is_sealed(footer)
    if seal is False:
        raise damaged(path, _OTHER_BYTES)
    told = pq.read_metadata(BytesIO(_MAGIC + footer))
    metadata = told.metadata or {}
    try:
        return Header(
            schema_version=int(metadata[b"schema_version"]),
            schema_hash=metadata[b"schema_hash"].decode(),
            made_from=json.loads(metadata[b"made_from"]),
            content_hash=metadata[b"content_hash"].decode(),
            rows=int(metadata[b"rows"]),
            key=json.loads(metadata[b"key"]),
            sealed=seal is not None,
            run_id=metadata.get(b"run_id", b"").decode(),
            size=sum(taken for _, taken in _layout(told)),
        )
    except (KeyError, ValueError) as error:
        raise damaged(path, "its footer is not one of eval-pipeline") from error


def _data_end(file: BinaryIO) -> int:
    """Returns the offset of the footer, computed from the footer's length at the end of the file."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _TAIL))
    return max(0, size - _TAIL - int.from_bytes(file.read(4), "little"))


_VERIFIED: set[_State] = set()
"""Files whose data this process has verified or written."""


def forget_verified() -> None:
    """Makes this process verify every file again; used to look for new damage."""
    _VERIFIED.clear()
    _header.cache_clear()
    _small.cache_clear()


def note_written(path: Path) -> None:
    """Marks a file as just written by this process, so that its data need not be verified."""
    _VERIFIED.add(_state(path))


def verify(path: Path, header: Header) -> None:
    """Compares the data with the content hash in the footer; done once for each process and state of the file.

    Raises:
        StoreError: the data and the hash differ.
    """
    try:
        state = _state(path)
        if state in _VERIFIED:
            return
        with path.open("rb") as file:
            digest, left = hashlib.sha256(header.schema_hash.encode()), _data_end(file)
            file.seek(0)
            while left > 0 and (data := file.read(min(_CHUNK, left))):
                digest.update(data)
                left -= len(data)
    except OSError as error:
        raise damaged(path, error.strerror or error) from error
    if digest.hexdigest()[:32] != header.content_hash:
        raise damaged(path, _OTHER_BYTES)
    _VERIFIED.add(state)


def layout(path: Path) -> list[tuple[int, int]]:
    """Returns rows and uncompressed bytes of each row group of a file."""
    return _layout(pq.read_metadata(path))


def _layout(told: pq.FileMetaData) -> list[tuple[int, int]]:
    groups = (told.row_group(number) for number in range(told.num_row_groups))
    return [(group.num_rows, group.total_byte_size) for group in groups]


def row_groups(
    path: Path, columns: Sequence[str] | None = None, chosen: Collection[int] | None = None
) -> Iterator[pa.Table]:
    """Yields the file's row groups one at a time, or those `chosen` by number; an empty file yields an empty table.

    Small files are kept, as a run reads most of them several times.
    """
    try:
        state = _state(path)
        if chosen is None and _header(*state).size <= _SMALL:
            yield from _small(state, None if columns is None else tuple(columns))
        else:
            yield from _groups(path, columns, chosen)
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, error) from error


_SMALL = 1 << 16
"""Bytes, before they are compressed, of a file whose rows are kept; there are at most `_MOST_SMALL` of them."""
_MOST_SMALL = 64


@lru_cache(maxsize=_MOST_SMALL)
def _small(state: _State, columns: tuple[str, ...] | None) -> list[pa.Table]:
    return list(_groups(state[0], columns))


def _groups(path: Path, columns: Sequence[str] | None, chosen: Collection[int] | None = None) -> Iterator[pa.Table]:
    with pq.ParquetFile(path) as file:
        if not file.num_row_groups:
            yield file.schema_arrow.empty_table().select(columns or file.schema_arrow.names)
        for index in range(file.num_row_groups) if chosen is None else chosen:
            yield file.read_row_group(index, columns=columns, use_threads=False)

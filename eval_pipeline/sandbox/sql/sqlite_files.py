"""Opens SQLite files of others without touching them: databases in WAL mode, read-only folders, unfinished changes."""

import atexit
import shutil
import sqlite3
import tempfile
from functools import cache
from pathlib import Path

_MAGIC = b"SQLite format 3\x00"
_WAL_MODE = 2
_FORMAT_PLACE = 19
"""Place of the byte in a file's header that says how it is read (https://www.sqlite.org/fileformat.html, 1.3.3)."""
_BESIDE = ("-wal", "-journal")
"""Files beside a database whose changes are not in it yet."""


def beside(path: Path) -> list[Path]:
    """Returns the files beside a database that hold changes which are not in it yet; mostly none."""
    found = (path.with_name(path.name + end) for end in _BESIDE)
    return [file for file in found if file.is_file() and file.stat().st_size]


def settled(path: Path) -> Path:
    """Returns a file with everything that a database holds, which can be opened without writing.

    That is the file itself, or a private copy with the changes that a write-ahead log or a journal beside it holds.
    SQLite would write beside the file to read them, which a read-only folder and the sandbox forbid.

    Raises:
        OSError: the file cannot be read or copied.
        sqlite3.Error: the changes cannot be applied.
    """
    others = beside(path)
    if not others or not _is_sqlite(path):
        return path
    state = tuple((file, status.st_mtime_ns, status.st_size) for file in (path, *others) for status in [file.stat()])
    return _copied(path, state)


def address_of(path: Path) -> str:
    """Returns the address that opens a settled file read-only.

    A file in WAL mode is opened as one that nobody changes, because SQLite would otherwise write beside it.
    """
    with path.open("rb") as file:
        head = file.read(_FORMAT_PLACE + 1)
    immutable = "&immutable=1" if head.startswith(_MAGIC) and head[_FORMAT_PLACE:] == bytes([_WAL_MODE]) else ""
    return f"{path.resolve().as_uri()}?mode=ro{immutable}"


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


@cache
def _copied(path: Path, state: tuple[tuple[Path, int, int], ...]) -> Path:
    """Returns a copy of a database and the files beside it, all in one file; `state` tells changed files apart."""
    copy = Path(tempfile.mkdtemp(dir=_aside())) / path.name
    for file, _, _ in state:
        shutil.copyfile(file, copy.with_name(file.name))
    connection = sqlite3.connect(copy, isolation_level=None)
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()
    finally:
        connection.close()
    return copy


@cache
def _aside() -> Path:
    """Returns a folder of this process, which is removed when it ends."""
    found = Path(tempfile.mkdtemp(prefix="eval-sqlite-"))
    atexit.register(shutil.rmtree, found, ignore_errors=True)
    return found

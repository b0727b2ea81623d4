"""Files that appear whole or not at all, whatever kills the process.

Write aside, fsync, rename over, fsync the folder.
"""

import errno
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path

from eval_pipeline.core.errors import StoreError

_DAY = 86_400
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_TRIES = 100
_serial = count()


def no_room(path: Path) -> StoreError:
    """The error for a full disk."""
    return StoreError(f"no room on the disk to write {path}; free some and run again, nothing recorded so far is lost")


def write_error(path: Path, error: OSError) -> StoreError:
    """The error for a file that could not be written."""
    if error.errno in _NO_ROOM:
        return no_room(path)
    return StoreError(f"cannot write {path}: {error.strerror or error}")


def no_room_text(message: str) -> bool:
    """Whether another library's message is about a full disk."""
    return any(os.strerror(code) in message for code in _NO_ROOM)


def fsync_path(path: Path) -> None:
    """Makes a file's contents, or a folder's entries, survive a power failure."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folders(folder: Path) -> None:
    """Makes the folder and its parents, each of them durably."""
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        fsync_path(path.parent)


def replace_durably(temporary: Path, target: Path) -> None:
    """Renames a file that is already on the disk over another."""
    temporary.replace(target)
    fsync_path(target.parent)


@cache
def _place() -> str:
    """Tells apart hosts and containers that share a file system: a process id means nothing elsewhere."""
    namespace = ""
    with suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(f"{os.uname().nodename} {namespace}".encode()).hexdigest()[:8]


def temporary_path(target: Path) -> Path:
    """A name beside the target that no other writer has, and that tells who writes."""
    return target.with_name(f".{target.name}.{_place()}.{os.getpid()}.{next(_serial)}.tmp")


def sweep(folder: Path) -> None:
    """Removes what killed writers left in a folder.

    That is any temporary file whose process is gone, or, where that cannot be known, one older than a day.
    """
    for path in folder.glob(".*.tmp"):
        with suppress(OSError):
            place, pid = path.name.split(".")[-4:-2]
            gone = place == _place() and pid.isdecimal() and not _alive(int(pid))
            if gone or path.stat().st_mtime < time.time() - _DAY:
                path.unlink()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def locked(path: Path, seconds: float) -> Iterator[int]:
    """Holds an exclusive lock that the kernel frees when the process dies; gives the open file.

    Raises:
        StoreError: another process still holds it after that many seconds, or the file cannot be made.
    """
    deadline = time.monotonic() + seconds
    while True:
        handle = _opened(path)
        try:
            _acquire(handle, path, deadline)
        except BaseException:
            os.close(handle)
            raise
        if _is_at(handle, path):
            break
        os.close(handle)  # the file was removed while we waited: whoever comes now would lock another one
    try:
        try:
            yield handle
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # closing is not enough where a fork still has the file open
    finally:
        os.close(handle)


def _opened(path: Path) -> int:
    for _ in range(_TRIES):
        try:
            make_folders(path.parent)
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            continue  # the folder was removed between the two
        except OSError as error:
            raise write_error(path, error) from error
    raise StoreError(f"cannot make {path}: its folder is removed again and again")


def _is_at(handle: int, path: Path) -> bool:
    """Whether the open file is still the one that the path names."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _acquire(handle: int, path: Path, deadline: float) -> None:
    pause = 0.002
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise StoreError(f"another process keeps {path} locked; let it finish or end it") from None
        except OSError as error:
            raise StoreError(f"cannot lock {path}: {error.strerror}; its file system must support flock") from error
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)

"""Writes files atomically: a file appears whole or not at all, even if the process is killed.

Each file is written beside its target and fsynced, then renamed over the target, and the folder is fsynced.
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

from eval_pipeline.core.errors import LockedError, StoreError

_DAY = 86_400
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_TRIES = 100
_HERE, _EXCHANGE = -100, 2
"""AT_FDCWD and RENAME_EXCHANGE of Linux."""
_serial = count()


def no_room(path: Path) -> StoreError:
    """Returns the error for a full disk."""
    return StoreError(f"no room on the disk to write {path}; free some and run again, nothing recorded so far is lost")


def write_error(path: Path, error: OSError) -> StoreError:
    """Returns the error for a file that could not be written."""
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
    """Creates the folder and its parents durably."""
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        fsync_path(path.parent)


def replace_durably(temporary: Path, target: Path) -> None:
    """Renames a file that is already on the disk over another one, durably."""
    temporary.replace(target)
    fsync_path(target.parent)


def exchange(one: Path, other: Path) -> None:
    """Exchanges two folders of one file system, so that neither place is ever empty.

    Where the system cannot (other systems than Linux, some network file systems), `other` is missing for a moment.
    """
    import ctypes

    call = getattr(ctypes.CDLL(None), "renameat2", None)
    if call is None or call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) != 0:
        aside = temporary_path(one)
        other.rename(aside)
        one.rename(other)
        aside.rename(one)


@cache
def _place() -> str:
    """Identifies this host and container: with a shared file system, process ids of other hosts mean nothing here."""
    namespace = ""
    with suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(f"{os.uname().nodename} {namespace}".encode()).hexdigest()[:8]


def temporary_path(target: Path) -> Path:
    """Returns an unused file name beside the target that identifies the writing process."""
    return target.with_name(f".{target.name}.{_place()}.{os.getpid()}.{next(_serial)}.tmp")


def sweep(folder: Path) -> None:
    """Removes temporary files that killed writers left in a folder.

    A file is removed if its process is gone or, where that cannot be known, if it is older than a day.
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
    """Holds an exclusive file lock, which the kernel releases when the process dies; yields the open file descriptor.

    Raises:
        LockedError: another process still holds the lock after `seconds`.
        StoreError: the file cannot be created.
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
        os.close(handle)  # the file was removed meanwhile, so newcomers would lock a different one
    try:
        try:
            yield handle
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # closing is not enough if a forked process still has the file open
    finally:
        os.close(handle)


def _opened(path: Path) -> int:
    for _ in range(_TRIES):
        try:
            make_folders(path.parent)
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            continue  # the folder was removed between the two calls
        except OSError as error:
            raise write_error(path, error) from error
    raise StoreError(f"cannot make {path}: its folder is removed again and again")


def _is_at(handle: int, path: Path) -> bool:
    """Whether the open file is still the one at the path."""
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
                raise LockedError(f"another process has locked {path}; wait for it to finish, or end it") from None
        except OSError as error:
            raise StoreError(f"cannot lock {path}: {error.strerror}; its file system must support flock") from error
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)

"""Small values that are kept in files below hashes of everything that they depend on, in a folder of bounded size.

Files are written once, aside, and renamed, so that any number of processes and hosts may share the folder. Losing one
costs only what it takes to make it again: nothing is synced, and no error of the disk reaches the caller.
"""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from eval_pipeline.core.hashing.sealed import read_sealed, write_sealed

MOST_BYTES = "EVAL_KEPT_MB"
_DEFAULT_MB = 1024
_BLOCK = 4096
"""Bytes by which a file system counts."""
_USED_S = 24 * 3600.0
"""How exactly it is known when a file was last used, in seconds."""
_LEFT_OVER_S = 3600.0
_SHARE = 0.8
"""Of the limit, what is left when it was exceeded."""
_log = logging.getLogger(__name__)


def look_up(place: Path) -> str | None:
    """Returns the text that `keep` put there; None if there is none, or it is damaged."""
    text = read_sealed(place)
    try:
        if text is None:
            if place.exists():
                _tell_damaged(place.parent)
        elif time.time() - place.stat().st_mtime > _USED_S:
            os.utime(place)
    except OSError:  # somebody else removes it, or may only read
        pass
    return text


def keep(place: Path, text: str) -> None:
    """Puts a text there; if that is impossible, a warning says so once."""
    try:
        write_sealed(place, text)
    except OSError as error:
        _tell_unwritable(place.parent, error.strerror or str(error))


def kept_bytes(folder: Path) -> int:
    """Returns how many bytes a folder of kept values takes."""
    return sum(size for _, size, _ in _files(folder))


def most_bytes() -> int:
    """Returns how many bytes it may take, by `EVAL_KEPT_MB`."""
    written = os.environ.get(MOST_BYTES, "")
    return (int(written) if written.isdecimal() else _DEFAULT_MB) << 20


def trim(folder: Path, most: int) -> int:
    """Removes what was not used for longest until no more than `most` bytes are left; returns how many files went."""
    files = sorted(_files(folder))
    taken, gone, now = sum(size for _, size, _ in files), 0, time.time()
    left = most if taken <= most else round(most * _SHARE)
    for used, size, path in files:
        left_over = os.path.basename(path).startswith(".made-") and now - used > _LEFT_OVER_S
        if taken <= left and not left_over:
            continue
        with suppress(OSError):
            os.unlink(path)
            gone, taken = gone + 1, taken - size
    return gone


def _files(folder: Path) -> Iterator[tuple[float, int, str]]:
    """Yields when each file was last used, its bytes and its path."""
    with suppress(OSError), os.scandir(folder) as found:
        for one in found:
            with suppress(OSError):  # another process removes it
                status = one.stat(follow_symlinks=False)
                yield status.st_mtime, -(-status.st_size // _BLOCK) * _BLOCK, one.path


@cache
def _tell_damaged(folder: Path) -> None:
    _log.warning("what was kept in %s is damaged in places, and is made again", folder)


@cache
def _tell_unwritable(folder: Path, why: str) -> None:
    _log.warning("nothing more can be kept in %s (%s): it is computed again each time", folder, why)

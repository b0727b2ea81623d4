"""Values that evaluations share: kept in small files below hashes of all that they depend on, code and libraries too.

Files are written once, aside, and renamed, so that any number of processes and hosts may share the folder. Losing one
costs only what it takes to make it again: nothing is synced, and no error of the disk reaches the caller.
"""

import logging
import os
import platform
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

from eval_pipeline.core.hashing.kept import read_sealed, write_sealed
from eval_pipeline.core.home import Home
from eval_pipeline.core.ids import json_hash, json_text, parse_json
from eval_pipeline.core.model import Json
from eval_pipeline.core.system.stopped import times_stopped
from eval_pipeline.fingerprints.fingerprints import Fingerprint

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


T = TypeVar("T")

OUTCOMES, EVIDENCE, DOUBTS, VALIDATIONS = "outcome", "evidence", "doubts", "validation"
MEASUREMENTS = "measured"
"""What is kept, as names of files begin: what executing an answer gave, how it compares with the gold, what is found
about the gold itself, and about an answer before it runs; what it costs beside the gold."""
OF_ANSWERS = (OUTCOMES, EVIDENCE, VALIDATIONS, MEASUREMENTS)
"""What answers of models are in."""
_TRIMMED = ".trimmed"
_TRIM_S = 3600.0


class KeptValues:
    """Values of one kind in a home's folder."""

    def __init__(self, home: Home, kind: str, made_by: Fingerprint) -> None:
        """Reads nothing yet.

        Args:
            home: the home.
            kind: one of the kinds above.
            made_by: the code and libraries that make the values.
        """
        machine = [*sys.version_info[:3], platform.machine(), sqlite3.sqlite_version]
        self._made_by = json_hash([kind, made_by.code, sorted(made_by.libraries.items()), machine])
        self._folder, self._kind, self._added = home.expected, kind, False

    def key(self, *parts: Json) -> str:
        """Returns the key of what depends on some plain data."""
        return json_hash([self._made_by, *parts])

    def find(self, key: str, read: Callable[[Json], T]) -> T | None:
        """Returns what is kept under a key, as `read` makes it of plain data; None if there is none.

        What is not under its own key, or in a form that `read` refuses by a ValueError, TypeError or LookupError,
        counts as missing.
        """
        text = look_up(self._place(key))
        if text is None:
            return None
        with suppress(ValueError, TypeError, LookupError):
            of, value = parse_json(text)
            return read(value) if of == key else None
        return None

    def put(self, key: str, value: Json) -> None:
        """Keeps plain data under a key."""
        keep(self._place(key), json_text([key, value]))
        self._added = True

    def bound(self) -> None:
        """Keeps the folder within its limit; does nothing if that was done within the hour, or nothing was added."""
        if self._added:
            self._added = False
            with suppress(OSError):
                trim_sometimes(self._folder)

    def _place(self, key: str) -> Path:
        return self._folder / f"{self._kind}-{key}.json"


def trim_sometimes(folder: Path) -> None:
    """Keeps a folder of kept values within its limit; does nothing if that was done within the hour."""
    mark = folder / _TRIMMED
    with suppress(FileNotFoundError):
        if 0 <= time.time() - mark.stat().st_mtime < _TRIM_S:
            return
    trim(folder, most_bytes())  # may take the mark, too
    mark.touch(mode=0o600)


def steady(make: Callable[[], T], keep_it: Callable[[T], None]) -> T:
    """Returns what `make` returns, and keeps it unless a limit of time or memory stopped something on the way."""
    before = times_stopped()
    made = make()
    if times_stopped() == before:
        keep_it(made)
    return made


def kept_of_answers(home: Home) -> list[Path]:
    """Returns the files in which answers of models are, and those that killed processes left."""
    return [path for kind in (*OF_ANSWERS, ".made") for path in home.expected.glob(f"{kind}-*")]

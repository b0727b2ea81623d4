"""Values that evaluations share: kept below hashes of all that they depend on, code and libraries among it."""

import platform
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from eval_pipeline.core.hashing.keeping import keep, look_up, most_bytes, trim
from eval_pipeline.core.home import Home
from eval_pipeline.core.ids import json_hash, json_text, parse_json
from eval_pipeline.core.model import Json
from eval_pipeline.core.system.stopped import times_stopped
from eval_pipeline.fingerprints.fingerprints import Fingerprint

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

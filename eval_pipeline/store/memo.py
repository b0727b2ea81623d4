"""What the last publisher left: a memo in the lock file that spares the next one opening anything."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from eval_pipeline.store.keys import RecordKey

FileStatus = tuple[int, int, int]
"""Size, time of change in nanoseconds, inode: different after any replacement of a file."""


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file of the record, as it was when it was published."""

    status: FileStatus
    content_hash: str
    key: RecordKey

    def to_json(self) -> list[int | str | None]:
        """As the memo holds it."""
        day = self.key.eval_date.isoformat() if self.key.eval_date else None
        return [*self.status, self.content_hash, self.key.suite, self.key.model_version, day]

    @classmethod
    def from_json(cls, size: int, changed: int, inode: int, content_hash: str, *key: str | None) -> "KnownFile":
        """The opposite of `to_json`."""
        suite, model_version, day = key
        return cls(
            (size, changed, inode),
            content_hash,
            RecordKey(suite, model_version, date.fromisoformat(day) if day else None),
        )


@dataclass(frozen=True, slots=True)
class Memo:
    """What is in the published store.

    Losing it, or the store's not being the one it speaks of, costs a rebuild and nothing else.

    Attributes:
        store: size and time of change of the store's file; others if something else wrote to it.
        schema: hash of the schema it was made with.
        files: path below the record → the file as published.
    """

    store: tuple[int, int]
    schema: str
    files: Mapping[str, KnownFile]

    @classmethod
    def load(cls, handle: int) -> "Memo | None":
        """Reads the memo from the open lock file; None for a new or damaged one."""
        try:
            found = json.loads(os.pread(handle, os.fstat(handle).st_size, 0))
            size, changed = found["store"]
            files = {name: KnownFile.from_json(*file) for name, file in found["files"].items()}
            return cls((size, changed), found["schema"], files)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def save(self, handle: int) -> None:
        """Writes the memo into the open lock file.

        In place and without fsync: what a crash leaves does not parse, or speaks of another store.
        """
        files = {name: file.to_json() for name, file in self.files.items()}
        data = json.dumps({"store": self.store, "schema": self.schema, "files": files}).encode()
        os.ftruncate(handle, 0)
        os.pwrite(handle, data, 0)


def file_status(status: os.stat_result) -> FileStatus:
    """What tells a file from one that replaced it."""
    return (status.st_size, status.st_mtime_ns, status.st_ino)


def store_status(path: Path) -> tuple[int, int] | None:
    """Size and time of change of the store's file; None where there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return (status.st_size, status.st_mtime_ns)

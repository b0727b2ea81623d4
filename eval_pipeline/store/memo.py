"""What the last publisher left: a memo in the lock file that spares the next one opening anything."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FileStatus = tuple[int, int, int]
"""Size, time of change in nanoseconds, inode: different after any replacement of a file."""


@dataclass(frozen=True, slots=True)
class Published:
    """A file of the record, as it was when it was published."""

    status: FileStatus
    content_hash: str


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
    files: Mapping[str, Published]

    @classmethod
    def load(cls, handle: int) -> "Memo | None":
        """Reads the memo from the open lock file; None for a new or damaged one."""
        try:
            found = json.loads(os.pread(handle, os.fstat(handle).st_size, 0))
            size, changed = found["store"]
            files = {name: Published((a, b, c), text) for name, (a, b, c, text) in found["files"].items()}
            return cls((size, changed), found["schema"], files)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def save(self, handle: int) -> None:
        """Writes the memo into the open lock file.

        In place and without fsync: what a crash leaves does not parse, or speaks of another store.
        """
        files = {name: [*file.status, file.content_hash] for name, file in self.files.items()}
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

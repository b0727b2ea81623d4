"""The publisher's memo in the lock file.

It says what was published last, so that the next publisher need not open the store.
"""

import fcntl
import hashlib
import json
import os
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.store.file_status import FileStatus
from eval_pipeline.store.keys import RecordKey

_CONTENT = b"content"
"""Where the lines have the checksum, so that their digest and the seal cover it for every version that reads them."""
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file of the record as it was when it was published."""

    status: FileStatus
    content_hash: str
    key: RecordKey


@dataclass(frozen=True, slots=True)
class Memo:
    """The contents of the published store.

    If the memo is lost, or the store is not the one it describes, the store is rebuilt; no data are lost.

    Attributes:
        store: size and modification time of the store file; they differ if another program wrote to it, or copied it.
        form: `ddl.FORMAT` of the code that made the store; 1 for version 0.1.0, which did not note it.
        schema: hash of the schema it was made with.
        lines: encoded key → its published files, encoded: publishing one evaluation parses only one line of thousands.
        content: checksum of the store file, by which it is known in a home that was copied; None if it was not noted.
    """

    store: tuple[int, int]
    form: int
    schema: str
    lines: Mapping[bytes, bytes]
    content: int | None = field(default=None, compare=False)

    @classmethod
    def load(cls, handle: int) -> "Memo | None":
        """Reads the memo from the open lock file; returns None if it is new or damaged."""
        try:
            head, _, body = os.pread(handle, os.fstat(handle).st_size, 0).partition(b"\n")
            found = json.loads(head)
            size, changed = found["store"]
            if hashlib.sha256(body).hexdigest() != found["digest"] or _seal(found) != found["seal"]:
                return None
            places = [line.partition(b"\t") for line in body.split(b"\n")[:-1]]
            lines = {key: files for key, _, files in places}
            content = lines.pop(_CONTENT, None)
            return cls(
                (size, changed), int(found["form"]), found["schema"], lines, None if content is None else int(content)
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def describes(self, store: Path) -> bool:
        """Whether the store file is the one that was published, or a copy of it with another time."""
        status = store_status(store)
        if status is None or status[0] != self.store[0]:
            return False
        return status == self.store or self.content == content_of(store)

    def known(self, keys: Collection[RecordKey] | None = None) -> dict[str, KnownFile]:
        """Returns the published files by path below the record, for the given keys or for all.

        Raises:
            ValueError: the memo is damaged.
        """
        wanted = self.lines if keys is None else [line for key in keys if (line := key_line(key)) in self.lines]
        files: dict[str, KnownFile] = {}
        for line in wanted:
            key = key_of_line(line)
            for name, (size, changed, inode, content_hash) in json.loads(self.lines[line]).items():
                files[name] = KnownFile((size, changed, inode), content_hash, key)
        return files

    def with_known(self, files: Mapping[str, KnownFile], keys: Collection[RecordKey] | None = None) -> "Memo":
        """Returns a memo in which these files replace those of the keys, or all files."""
        by_key: dict[RecordKey, dict[str, list[int | str]]] = {}
        for name, file in files.items():
            by_key.setdefault(file.key, {})[name] = [*file.status, file.content_hash]
        gone = set() if keys is None else {key_line(key) for key in keys}
        kept = {} if keys is None else {line: told for line, told in self.lines.items() if line not in gone}
        made = {key_line(key): json.dumps(found).encode() for key, found in by_key.items()}
        return replace(self, lines=kept | made)

    def save(self, handle: int) -> None:
        """Writes the memo into the open lock file.

        It is written in place and without fsync: after a crash, the memo does not parse or describes another store, and
        both are detected.
        """
        content = {} if self.content is None else {_CONTENT: b"%d" % self.content}
        body = b"".join([b"%b\t%b\n" % pair for pair in {**content, **self.lines}.items()])
        head: dict[str, Any] = {"store": list(self.store), "form": self.form, "schema": self.schema}
        head["digest"] = hashlib.sha256(body).hexdigest()
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(head | {"seal": _seal(head)}).encode() + b"\n" + body, 0)


def _seal(head: Mapping[str, Any]) -> str:
    return json_hash([head["store"], head["form"], head["schema"], head["digest"]])


def key_line(key: RecordKey) -> bytes:
    """Encodes a key."""
    day = key.eval_date.isoformat() if key.eval_date else None
    return json.dumps([key.suite, key.model_version, day, *[key.evaluation] * bool(key.evaluation)]).encode()


def key_of_line(line: bytes) -> RecordKey:
    """Decodes a key."""
    suite, model_version, day, *evaluation = json.loads(line)
    return RecordKey(suite, model_version, date.fromisoformat(day) if day else None, *evaluation)


def is_as_published(store: Path) -> bool:
    """Whether the store file is the one that was published last; also true if no memo exists."""
    memo = published_memo(store)
    return memo is None or memo.describes(store)


def form_of(store: Path) -> int | None:
    """Returns the `ddl.FORMAT` of the code that published last; None if no memo exists."""
    memo = published_memo(store)
    return None if memo is None else memo.form


def refuse_newer(store: Path, memo: Memo | None, form: int) -> None:
    """Raises a StoreError if the code that published last knows a newer form than this one's.

    If this version rebuilt the store, the newer one would rebuild it again, and so on forever.
    """
    if memo is not None and memo.form > form:
        raise StoreError(
            f"{store} was made by a newer eval-pipeline; use that version, or run `eval-pipeline publish --full` to "
            "rebuild it with this one"
        )


def published_memo(store: Path) -> Memo | None:
    """Returns the memo; None if there is none, or a publisher is at work."""
    try:
        with store.with_name(f"{store.name}.lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return Memo.load(file.fileno())
    except (FileNotFoundError, BlockingIOError):  # nothing was published yet, or a publisher is at work
        return None


def store_status(path: Path) -> tuple[int, int] | None:
    """Returns size and modification time of the store file; None if it does not exist."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return (status.st_size, status.st_mtime_ns)


def content_of(path: Path) -> int:
    """Returns a checksum of a file's bytes, at some two GB a second."""
    found = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            found = zlib.crc32(block, found)
    return found

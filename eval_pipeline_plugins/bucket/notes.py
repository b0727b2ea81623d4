"""Notes of commands in a bucket: any host sees them, and by the lease of their process if it is gone."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from uuid import uuid4

from eval_pipeline.core.errors import StoreError
from eval_pipeline.state.place import state_place
from eval_pipeline.workspace.noting.note_files import KEPT, stamp
from eval_pipeline_plugins.bucket.bucket import Bucket

_FOLDER, _ENDED = "commands", "ended-commands"


class NoteObject:
    """The note of a process; its object exists while it lists anything."""

    def __init__(self, bucket: Bucket, name: str = "", lines: tuple[str, ...] = (), etag: str | None = None) -> None:
        """Takes the bucket, and name, lines and etag of a note that is there."""
        self._bucket = bucket
        self._name = name or f"{stamp()}-{uuid4().hex[:12]}"
        self._lines, self._etag = list(lines), etag

    def add(self, line: str, *, durable: bool) -> None:
        """Adds a line, written with the next durable one. Raises StoreError if bucket or database cannot be used."""
        if not self._lines:
            leases = state_place().leases()
            assert leases is not None  # a home in a bucket has a database
            self._lines.append(json.dumps({"process": leases.process().name}))
        self._lines.append(line.strip())
        if not durable:
            return
        self._etag = self._bucket.put(f"{_FOLDER}/{self._name}", "\n".join(self._lines).encode(), self._etag)

    def drop(self) -> None:
        """Removes the note. If the bucket is away, the next command of any host does, when this process is gone."""
        with suppress(StoreError):
            self._bucket.delete(f"{_FOLDER}/{self._name}")

    def keep(self) -> None:
        """Moves the note to those of ended commands. Raises StoreError."""
        self._bucket.put(f"{_ENDED}/{self._name}", "\n".join(self._lines).encode(), None)
        self.drop()
        for found in sorted(found.name for found in self._bucket.list(_ENDED))[:-KEPT]:
            self._bucket.delete(found)


def noted_objects(bucket: Bucket) -> Iterator[tuple[NoteObject | None, str]]:
    """Yields each note with its text; None instead of a note whose process is alive."""
    leases = state_place().leases()
    for name in sorted(found.name for found in bucket.list(_FOLDER)):
        note = bucket.read(name)
        if note is None or leases is None:
            continue
        text = note[0].decode(errors="replace")
        process = _process_of(text)
        if process is not None:
            leases.free_of_dead(process)
        own = NoteObject(bucket, name.removeprefix(f"{_FOLDER}/"), tuple(text.split("\n")), note[1].etag)
        yield None if process is not None and leases.is_held(process) else own, text


def ended_objects(bucket: Bucket) -> Iterator[tuple[str, str, Callable[[], None]]]:
    """Yields id and text of the note of each command that has ended, the oldest first, and what removes the note."""
    for name in sorted(found.name for found in bucket.list(_ENDED)):
        if (note := bucket.read(name)) is not None:
            yield name.removeprefix(f"{_ENDED}/"), note[0].decode(errors="replace"), partial(bucket.delete, name)


def _process_of(text: str) -> str | None:
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(text.partition("\n")[0])["process"])
    return None

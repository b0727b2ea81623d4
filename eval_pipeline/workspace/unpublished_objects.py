"""Notes of unpublished evaluations in a bucket: any host sees them, and by the lease of their process if it is gone."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from uuid import uuid4

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.home import Home
from eval_pipeline.objects.bucket import Bucket
from eval_pipeline.workspace.locks import database_leases

_FOLDER = "unpublished"


class NoteObject:
    """The note of this process; its object exists while it lists anything."""

    def __init__(self, home: Home) -> None:
        """Takes a home in a bucket."""
        self._bucket, self._name = _bucket(home), f"{_FOLDER}/{uuid4().hex}"
        self._lines: list[str] = []
        self._etag: str | None = None

    def add(self, line: str) -> None:
        """Adds a line. Raises StoreError if bucket or database cannot be used."""
        leases = database_leases()
        assert leases is not None  # a home in a bucket has a database
        head = json.dumps({"process": leases.process().name})
        text = "\n".join([head, *self._lines, line])
        self._etag = self._bucket.put(self._name, text.encode(), self._etag)
        self._lines.append(line)

    def clear(self) -> None:
        """Removes the note. If the bucket is away, the next publishing of any host does, when this process is gone."""
        if self._etag is not None:
            with suppress(StoreError):
                self._bucket.delete(self._name)
            self._lines, self._etag = [], None


def left_notes(home: Home) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yields the text of each note whose process is gone, and what removes the note."""
    bucket, leases = _bucket(home), database_leases()
    for name in sorted(found.name for found in bucket.list(_FOLDER)):
        note = bucket.read(name)
        if note is None or leases is None:
            continue
        text = note[0].decode(errors="replace")
        process = _process_of(text)
        if process is not None:
            leases.free_of_dead(process)
        if process is None or not leases.is_held(process):
            yield text, partial(bucket.delete, name)


def _process_of(text: str) -> str | None:
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(text.partition("\n")[0])["process"])
    return None


def _bucket(home: Home) -> Bucket:
    assert home.bucket is not None
    return Bucket(home.bucket)

"""Notes of evaluations that are recorded but not published yet, so that a crash in between can be told and repaired.

A command publishes all its evaluations together at its end. Until then they are listed in a file of its own, which it
keeps locked. The kernel frees the lock when the process dies, so a file that is not locked was left by a dead process.
In a bucket they are objects, with the lease of the process instead of a lock.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.store.durable import locked, replace_durably

if TYPE_CHECKING:
    from eval_pipeline.workspace.unpublished_objects import NoteObject


class Unpublished:
    """The note of this process; its file exists while it lists anything."""

    def __init__(self, home: Home) -> None:
        self._object = None if home.bucket is None else _object(home)
        self._path = home.unpublished / uuid4().hex
        self._hidden = self._path.with_name(f".{self._path.name}")  # until it is locked, others would take it for left
        self._file = ExitStack()
        self._handle: int | None = None

    def add(self, partition: Partition) -> None:
        """Lists an evaluation. Raises StoreError if the file cannot be written."""
        line = json.dumps([partition.suite, partition.model_version, partition.eval_date.isoformat()])
        if self._object is not None:
            self._object.add(line)
            return
        if self._handle is None:
            self._handle = self._file.enter_context(locked(self._hidden, 0))
        try:
            os.write(self._handle, f"{line}\n".encode())
            os.fsync(self._handle)
            if self._hidden.exists():
                replace_durably(self._hidden, self._path)
        except OSError as error:
            raise StoreError(f"cannot write {self._path}: {error.strerror}") from error

    def clear(self) -> None:
        """Removes the note: everything in it has been published, or reported as failed."""
        if self._object is not None:
            self._object.clear()
        if self._handle is not None:
            for path in (self._path, self._hidden):
                path.unlink(missing_ok=True)
            self._handle = None
            self._file.close()


@contextmanager
def adopted(home: Home) -> Iterator[list[Partition]]:
    """Yields the evaluations that dead processes left unpublished; forgets them if the block succeeds."""
    if home.bucket is not None:
        notes = list(_left_objects(home))
        yield list(dict.fromkeys(partition for listed, _ in notes for partition in listed))
        for _, forget in notes:
            forget()
        return
    with ExitStack() as stack:
        found: dict[Path, list[Partition]] = {}
        for path in _notes(home):
            with suppress(StoreError):  # the process is alive
                stack.enter_context(locked(path, 0))
                found[path] = list(_listed(path.read_text(errors="replace")))
        yield list(dict.fromkeys(partition for listed in found.values() for partition in listed))
        for path in found:
            path.unlink(missing_ok=True)


def left_behind(home: Home) -> list[Partition]:
    """Returns the evaluations that dead processes left unpublished."""
    if home.bucket is not None:
        return list(dict.fromkeys(partition for listed, _ in _left_objects(home) for partition in listed))
    texts = (path.read_text(errors="replace") for path in _notes(home) if _is_free(path))
    found = [partition for text in texts for partition in _listed(text)]
    return list(dict.fromkeys(found))


def lag(home: Home) -> str:
    """Returns a sentence if the store lacks what dead processes left; otherwise nothing."""
    found = left_behind(home)
    if not found:
        return ""
    first, more = found[0], f" and {len(found) - 1} more" if len(found) > 1 else ""
    place = f"{first.suite} · {first.model_version} · {first.eval_date}{more}"
    return f"the store lags behind the record: a run ended before it published {place}"


def _notes(home: Home) -> list[Path]:
    with suppress(FileNotFoundError):
        return sorted(path for path in home.unpublished.iterdir() if not path.name.startswith("."))
    return []


def _is_free(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    return False


def _object(home: Home) -> "NoteObject":
    from eval_pipeline.workspace.unpublished_objects import NoteObject

    return NoteObject(home)


def _left_objects(home: Home) -> Iterator[tuple[list[Partition], Callable[[], None]]]:
    from eval_pipeline.workspace.unpublished_objects import left_notes

    for text, forget in left_notes(home):
        yield list(_listed(text)), forget


def _listed(text: str) -> Iterator[Partition]:
    """Yields what a note lists; the last line of a file may be torn."""
    for line in text.splitlines():
        with suppress(ValueError, TypeError):
            suite, model_version, day = json.loads(line)
            yield Partition(suite, model_version, date.fromisoformat(day))

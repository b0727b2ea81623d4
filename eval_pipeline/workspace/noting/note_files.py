"""Notes of commands as files below the home's `commands/`, which their processes keep locked."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.durable import locked, make_folders, no_room, replace_durably, write_error

KEPT = 1000
"""Notes of ended commands that are kept for Dagster; if `dev` is never run, older ones go."""


class Note(Protocol):
    """Where the entries of a note are written."""

    def add(self, line: str, *, durable: bool) -> None:
        """Adds a line. Raises StoreError."""

    def drop(self) -> None:
        """Removes the note."""

    def keep(self) -> None:
        """Moves the note to those of ended commands."""


class NoteFile:
    """A note in a file, which is made and locked with the first line."""

    def __init__(self, folder: Path, path: Path | None = None, handle: int | None = None) -> None:
        """Takes the folder of notes; path and locked handle of a note that is there."""
        stem = f"{stamp().replace(':', '').replace('.', '')}-{uuid4().hex[:12]}"
        self._path = path or folder / f"{stem}.jsonl"
        self._hidden = self._path.with_name(f".{self._path.name}")  # until it is locked, others would take it for left
        self._file, self._handle = ExitStack(), handle
        self._torn = False

    def add(self, line: str, *, durable: bool) -> None:
        """See `Note`."""
        if self._handle is None:
            self._handle = self._file.enter_context(locked(self._hidden, 0))
        try:
            os.lseek(self._handle, 0, os.SEEK_END)
            text = ("\n" * self._torn + f"{line}\n").encode()
            self._torn = True
            if os.write(self._handle, text) < len(text):
                raise no_room(self._path)
            self._torn = False
            if durable:
                os.fsync(self._handle)
            if durable and self._hidden.exists():
                replace_durably(self._hidden, self._path)
        except OSError as error:
            raise write_error(self._path, error) from error

    def drop(self) -> None:
        """See `Note`."""
        for path in (self._path, self._hidden):
            path.unlink(missing_ok=True)
        self._file.close()

    def keep(self) -> None:
        """See `Note`."""
        folder = self._path.parent / "ended"
        try:
            make_folders(folder)
            replace_durably(self._path, folder / self._path.name)
        except OSError as error:
            raise write_error(folder / self._path.name, error) from error
        for path in _paths(folder)[:-KEPT]:
            path.unlink(missing_ok=True)
        self._file.close()


def noted_files(folder: Path, held: ExitStack) -> Iterator[tuple[Note | None, str]]:
    """Yields each note with its text; None instead of one whose process is alive. The others are locked in `held`."""
    for path in _paths(folder):
        try:
            handle = held.enter_context(locked(path, 0))
        except StoreError:  # the process is alive
            with suppress(FileNotFoundError):
                yield None, path.read_text(errors="replace")
        else:
            yield NoteFile(folder, path, handle), path.read_text(errors="replace")


def ended_files(folder: Path) -> Iterator[tuple[str, str, Callable[[], None]]]:
    """Yields id and text of the note of each command that has ended, the oldest first, and what removes the note."""
    for path in _paths(folder / "ended"):
        with suppress(FileNotFoundError):  # another `dev` was quicker
            yield path.stem, path.read_text(errors="replace"), partial(path.unlink, missing_ok=True)


def stamp() -> str:
    """Returns the present time as notes have it: UTC, in ISO form."""
    return datetime.now(UTC).replace(tzinfo=None).isoformat()


def _paths(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError):
        return sorted(path for path in folder.iterdir() if path.suffix == ".jsonl" and not path.name.startswith("."))
    return []

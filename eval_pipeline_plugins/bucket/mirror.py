"""Copies of a bucket's objects on the disk. A copy is used while the object has the ETag with which it was fetched.

Whoever replaces a copy holds a lock from the request to the bucket until the copy is in its place: otherwise a process
of this host could put an older one over a newer one that another process has just been told to be current.
"""

import hashlib
import os
import time
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from uuid import uuid4

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.durable import locked, make_folders, replace_durably, sweep, temporary_path, write_error
from eval_pipeline.store.file_status import FileStatus, file_status
from eval_pipeline_plugins.bucket.bucket import Bucket, ConflictError, FoundObject

_NOTE = ".etag"
_TRIES = 10
_YOUNG_S = 600.0
"""Copies younger than this are left alone, since somebody may just read them."""
_PATIENCE_S = 1800.0
"""How long to wait for another process of this host that fetches or uploads the same object."""


class Mirror:
    """The objects of a bucket whose names begin with that of a folder, and their copies in that folder."""

    def __init__(self, root: Path, bucket: Bucket) -> None:
        """Takes the folder of the copies, whose name is that of the objects' folder in the bucket, too."""
        self.root, self.bucket = root, bucket

    def name(self, path: Path) -> str:
        """Returns the name of a copy's object."""
        return f"{self.root.name}/{path.relative_to(self.root).as_posix()}"

    def path(self, name: str) -> Path:
        """Returns the place of an object's copy."""
        return self.root / name.removeprefix(f"{self.root.name}/")

    def update(self, path: Path, *, anew: bool = False) -> FoundObject | None:
        """Makes the copy that of the object as it is now; returns what is known of it, or None if there is no object.

        Args:
            path: the copy.
            anew: fetch it even if it seems to be current.

        Raises:
            StoreError: the bucket cannot be used, or the disk is full.
        """
        if anew:
            with _alone(path):
                return self._fetch(path)
        found = self.bucket.look(self.name(path))
        if found is None and not path.exists():
            return None
        if found is not None and self.holds(path, found):
            return found
        with _alone(path):
            if found is not None and self.holds(path, found):  # another process has fetched it
                return found
            return self._fetch(path)

    def holds(self, path: Path, found: FoundObject) -> bool:
        """Whether the copy is that of the object as it was found."""
        try:
            etag, _, state = _note(path).read_text().partition("\n")
            return etag == found.etag and state == _state(path)
        except OSError:
            return False

    def put(self, temporary: Path, path: Path, before: str | None) -> str:
        """Uploads a file that is whole, then makes it the copy; returns the object's ETag.

        Raises:
            ConflictError: the object is not the one that `before` is the ETag of.
            StoreError: the bucket cannot be used, or the disk is full.
        """
        with _alone(path):
            etag = self.bucket.put_file(self.name(path), temporary, before)
            self._place(temporary, path, etag)
            return etag

    def drop(self, path: Path) -> None:
        """Removes a copy."""
        for gone in (path, _note(path)):
            gone.unlink(missing_ok=True)

    def copies(self) -> set[Path]:
        """Returns the paths of all copies."""
        notes = self.root.rglob(f".*{_NOTE}")
        return {note.with_name(note.name[1:].removesuffix(_NOTE)) for note in notes}

    def drop_gone(self) -> None:
        """Removes the copies whose objects another host has removed, but for young ones, which may just be read.

        The bucket is listed only if a host has told since then that it removed objects.
        """
        told = self.bucket.look(self._removed)
        if told is None or _text(self._dropped) == told.etag:
            return
        there, now, left = {found.name for found in self.bucket.list(self.root.name)}, time.time(), False
        for path in self.root.rglob("[!.]*.*"):
            with suppress(FileNotFoundError):  # another process of this host has removed it
                if self.name(path) not in there and path.is_file():
                    if now - path.stat().st_mtime > _YOUNG_S:
                        self.drop(path)
                    else:
                        left = True
        if not left:
            make_folders(self.root)
            self._dropped.write_text(told.etag)

    def note_removal(self) -> None:
        """Notes that this host removes an object, so that `tell_removed` tells other hosts."""
        make_folders(self.root)
        self._removing.touch()

    def tell_removed(self) -> None:
        """Tells other hosts, if this one has removed objects since it last did."""
        if self._removing.exists():
            told = self.bucket.look(self._removed)
            with suppress(ConflictError):  # another host tells; they list the bucket after that
                self.bucket.put(self._removed, uuid4().hex.encode(), None if told is None else told.etag)
            self._removing.unlink(missing_ok=True)

    @property
    def _removed(self) -> str:
        return f"{self.root.name}/removed"

    @property
    def _removing(self) -> Path:
        return self.root / ".removing"

    @property
    def _dropped(self) -> Path:
        return self.root / ".dropped"

    def _fetch(self, path: Path) -> FoundObject | None:
        for _ in range(_TRIES):
            make_folders(path.parent)
            sweep(path.parent)
            temporary = temporary_path(path)
            try:
                found = self.bucket.fetch(self.name(path), temporary)
                if found is None:
                    self.drop(path)
                    return None
                if temporary.stat().st_size == found.size:
                    self._place(temporary, path, found.etag)
                    return found
            finally:
                with suppress(OSError):
                    temporary.unlink()
        raise StoreError(f"{self.bucket.address}/{self.name(path)} cannot be fetched whole; run again")

    def _place(self, temporary: Path, path: Path, etag: str) -> None:
        """Puts a copy in its place, with a note that says of which file it holds; a torn pair is fetched again."""
        try:
            state = _state(temporary)
            replace_durably(temporary, path)
            note = temporary_path(_note(path))
            note.write_text(f"{etag}\n{state}")
            note.replace(_note(path))
        except OSError as error:
            raise write_error(path, error) from error


def object_status(found: FoundObject | None) -> FileStatus | None:
    """Returns what distinguishes an object from one that replaced it; the same on every host."""
    if found is None:
        return None
    number = int.from_bytes(hashlib.sha256(found.etag.encode()).digest()[:7], "big")
    return (found.size, number, 0)


def _state(path: Path) -> str:
    return " ".join(map(str, file_status(os.stat(path))))


def _text(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


def _alone(path: Path) -> AbstractContextManager[int]:
    return locked(path.with_name(f".{path.name}.lock"), _PATIENCE_S)


def _note(path: Path) -> Path:
    return path.with_name(f".{path.name}{_NOTE}")

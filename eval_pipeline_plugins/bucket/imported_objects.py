"""Imported suites, predictions and model versions as objects of a bucket.

A suite is one object, an archive of its folder, so that no host sees a part of it. Its copy is unpacked; a file in the
unpacked folder says which archive it is, and that nothing may be added to it.
"""

import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TypeVar

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.home import Home
from eval_pipeline.store.durable import exchange, fsync_path, locked, make_folders, replace_durably, temporary_path
from eval_pipeline.suites.headers import COPIED_FROM
from eval_pipeline.workspace.homes.imported import Imported
from eval_pipeline_plugins.bucket.bucket import Bucket, ConflictError
from eval_pipeline_plugins.bucket.mirror import Mirror

T = TypeVar("T")
_ARCHIVES, _ENDING = "archives", ".tar"
_TRIES = 10
_PATIENCE_S = 600.0
_YOUNG_S = 600.0
"""A folder without a note of its archive is left alone for so long: another process may just be importing it."""


class ImportedObjects(Imported):
    """Below `imported/`: `archives/<suite>.tar`, `predictions/…` and `model_versions.yaml`."""

    def __init__(self, home: Home, bucket: Bucket, alone: Callable[[], AbstractContextManager[object]]) -> None:
        """Takes a home, its bucket, and what keeps imports of other hosts apart."""
        super().__init__(home)
        self._mirror, self._alone = Mirror(home.imported, bucket), alone

    def in_turn(self) -> AbstractContextManager[object]:  # noqa: D102 as in `Imported`, like those below
        return self._alone()

    def refresh(self) -> None:  # noqa: D102
        listed = {self._mirror.path(found.name): found for found in self._mirror.bucket.list(self._mirror.root.name)}
        for path in self._mirror.copies() - listed.keys():
            self._mirror.update(path)  # looks again: another process may have imported it after the listing
        for path, found in listed.items():
            now = found if self._mirror.holds(path, found) else self._mirror.update(path)
            if now is not None and path.parent == self._archives and path.suffix == _ENDING:
                self._unpack(path, now.etag)
        for folder in self._home.imported_suites.glob("[!.]*"):
            gone = not self._archive(folder.name).exists()
            if gone and (_origin(folder) or _is_old(folder)):
                shutil.rmtree(folder, ignore_errors=True)

    def share_suite(self, name: str) -> None:  # noqa: D102
        folder, path = self._home.imported_suites / name, self._archive(name)
        make_folders(path.parent)
        temporary = temporary_path(path)
        try:
            before = self._mirror.update(path)
            _pack(folder, temporary)
            etag = self._mirror.put(temporary, path, None if before is None else before.etag)
            (folder / COPIED_FROM).write_text(etag)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)  # what other hosts do not have is not imported
            raise
        finally:
            temporary.unlink(missing_ok=True)

    def share_predictions(self, path: Path) -> None:  # noqa: D102
        found = self._mirror.bucket.look(self._mirror.name(path))
        self._put(path, None if found is None else found.etag)

    def change_model_versions(self, change: Callable[[], T]) -> T:  # noqa: D102
        path = self._home.imported_model_versions
        with locked(path.with_name(".changing.lock"), _PATIENCE_S):
            for _ in range(_TRIES):
                before = self._mirror.update(path)
                kept = path.read_bytes() if path.exists() else None
                made = change()
                if not path.exists() or (before is not None and self._mirror.holds(path, before)):
                    return made  # it changed nothing
                try:
                    self._put(path, None if before is None else before.etag)
                except BaseException as error:
                    self._undo(path, kept)
                    if not isinstance(error, ConflictError):  # that means that another host has changed it
                        raise
                else:
                    return made
        raise StoreError(f"{self._mirror.bucket.address} is being changed by other hosts all the time; try again")

    def remove(self, path: Path) -> None:  # noqa: D102
        name = self._mirror.name(path)
        self._mirror.bucket.delete(name)
        for found in list(self._mirror.bucket.list(name)):
            self._mirror.bucket.delete(found.name)
        super().remove(path)

    @property
    def _archives(self) -> Path:
        return self._mirror.root / _ARCHIVES

    def _archive(self, suite: str) -> Path:
        return self._archives / f"{suite}{_ENDING}"

    def _put(self, path: Path, before: str | None) -> None:
        temporary = temporary_path(path)
        try:
            shutil.copyfile(path, temporary)
            fsync_path(temporary)
            self._mirror.put(temporary, path, before)
        finally:
            temporary.unlink(missing_ok=True)

    def _undo(self, path: Path, kept: bytes | None) -> None:
        """Makes a copy again what it was: what other hosts do not have is not imported."""
        if kept is None:
            self._mirror.drop(path)
            return
        temporary = temporary_path(path)
        try:
            temporary.write_bytes(kept)
            replace_durably(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    def _unpack(self, archive: Path, etag: str) -> None:
        folder = self._home.imported_suites / archive.name.removesuffix(_ENDING)
        if _origin(folder) == etag or (folder.exists() and not _origin(folder) and not _is_old(folder)):
            return
        make_folders(folder.parent)
        with (
            locked(archive.with_name(f".{archive.name}.unpacking"), _PATIENCE_S),
            tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder.parent) as aside,
        ):
            if _origin(folder) == etag:  # another process has unpacked it
                return
            made = Path(aside) / folder.name
            try:
                with tarfile.open(archive) as packed:
                    packed.extractall(made, filter="data")
            except (tarfile.TarError, EOFError) as error:
                place = f"{self._mirror.bucket.address}/{self._mirror.name(archive)}"
                raise StoreError(f"{place} is damaged ({error}); import the suite again") from error
            (made / COPIED_FROM).write_text(etag)
            if folder.exists():
                exchange(made, folder)  # the old one goes with the folder in which it then is
            else:
                made.rename(folder)


def _pack(folder: Path, target: Path) -> None:
    """Writes an archive of a folder's contents; the same contents give the same bytes."""
    with tarfile.open(target, "w") as packed:
        for path in sorted(folder.rglob("*")):
            member = packed.gettarinfo(path, path.relative_to(folder).as_posix())
            member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
            member.mode = 0o700 if path.is_dir() else 0o600
            if path.name == COPIED_FROM:
                continue
            if not member.isfile():
                packed.addfile(member)
                continue
            with path.open("rb") as file:
                packed.addfile(member, file)
    fsync_path(target)


def _origin(folder: Path) -> str | None:
    """Returns the ETag of the archive that a folder was unpacked from; None if it was not."""
    try:
        return (folder / COPIED_FROM).read_text()
    except OSError:
        return None


def _is_old(folder: Path) -> bool:
    with suppress(OSError):
        return time.time() - folder.stat().st_mtime > _YOUNG_S
    return False

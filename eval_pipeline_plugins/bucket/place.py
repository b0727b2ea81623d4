"""What of a home is in its bucket: record, store, imports, notes and parts, with copies on each host."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.home import Home
from eval_pipeline.core.system.private import make_private
from eval_pipeline.store.durable import make_folders, temporary_path
from eval_pipeline.store.listing import Gate
from eval_pipeline.workspace.homes.home_folders import HomeFolders
from eval_pipeline.workspace.homes.imported import Imported
from eval_pipeline.workspace.homes.locks import held as locked_in
from eval_pipeline.workspace.homes.places import HomePlace
from eval_pipeline.workspace.noting.note_files import Note
from eval_pipeline.workspace.shards.part_files import PartFiles
from eval_pipeline.workspace.tabled.track_tables import further_tables
from eval_pipeline_plugins.bucket.bucket import Bucket, ConflictError
from eval_pipeline_plugins.bucket.conditions import broken_condition
from eval_pipeline_plugins.bucket.imported_objects import ImportedObjects
from eval_pipeline_plugins.bucket.notes import NoteObject, ended_objects, noted_objects
from eval_pipeline_plugins.bucket.record import MirroredRecord

if TYPE_CHECKING:
    from eval_pipeline_plugins.bucket.publisher import MirroredPublisher

LOCK_S = 600.0


class BucketPlace(HomePlace):
    """A home in a bucket; methods raise StoreError if it cannot be used."""

    is_shared = True

    @property
    def _bucket(self) -> Bucket:
        assert self.home.bucket is not None
        return Bucket(self.home.bucket)

    def record(self) -> MirroredRecord:  # noqa: D102 as in `HomePlace`, like those below
        return MirroredRecord(self.home.record, self._bucket)

    def folders(self) -> HomeFolders:  # noqa: D102
        return _BucketFolders(self.home, self._bucket)

    def parts(self) -> PartFiles:  # noqa: D102
        return _BucketPartFiles(self.home, self._bucket)

    def imported(self) -> Imported:  # noqa: D102
        return ImportedObjects(self.home, self._bucket, lambda: self._alone("importing"))

    def lock_name(self, name: str) -> str:  # noqa: D102
        # Without the endpoint, which hosts may reach under several names.
        return f"{name}-{hashlib.sha256(str(self.home.bucket).encode()).hexdigest()[:16]}"

    def publishing_in_turn(self) -> AbstractContextManager[object]:  # noqa: D102
        return self._alone("publishing")

    def fresh_store(self) -> Path:  # noqa: D102
        make_private(self.home.root)
        self._publisher.refresh(LOCK_S)
        return self.home.store

    def store_problems(self, before: Callable[[int], None]) -> Iterator[str]:  # noqa: D102
        yield from self._publisher.problems(before)

    def broken(self) -> str | None:  # noqa: D102
        return broken_condition(self._bucket)

    def new_note(self) -> Note:  # noqa: D102
        return NoteObject(self._bucket)

    def notes(self, held: ExitStack) -> Iterator[tuple[Note | None, str]]:  # noqa: D102
        return noted_objects(self._bucket)

    def ended_notes(self) -> Iterator[tuple[str, str, Callable[[], None]]]:  # noqa: D102
        return ended_objects(self._bucket)

    @property
    def _publisher(self) -> "MirroredPublisher":
        record = self.record()
        return record.publisher()(record, self.home.store, further_tables(), Gate())

    def _alone(self, name: str) -> AbstractContextManager[object]:
        return locked_in(self.home.root, (self.lock_name(name),), LOCK_S)


class _BucketFolders(HomeFolders):
    """Folders of objects, and of what only this host has, such as reports."""

    def __init__(self, home: Home, bucket: Bucket) -> None:
        self._root, self._bucket = home.root, bucket

    def below(self, root: Path, names: Sequence[str]) -> list[Path]:
        pattern, depth = "/".join(("*", *names)), len(root.relative_to(self._root).parts) + 1 + len(names)
        objects = (found.name.split("/") for found in self._bucket.list(self._name(root)))
        folders = {self._root.joinpath(*parts[:depth]) for parts in objects if len(parts) > depth}
        there = {folder for folder in folders if folder.relative_to(root).match(pattern)}
        return sorted(there.union(super().below(root, names)))

    def sizes(self, folder: Path) -> list[int]:
        return [found.size for found in self._bucket.list(self._name(folder))] or super().sizes(folder)

    def remove(self, folder: Path) -> None:
        for found in list(self._bucket.list(self._name(folder))):
            self._bucket.delete(found.name)
        super().remove(folder)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()


class _BucketPartFiles(PartFiles):
    """Parts as objects. No host keeps copies: a part is read once."""

    def __init__(self, home: Home, bucket: Bucket) -> None:
        super().__init__(home, _BucketFolders(home, bucket))
        self._root, self._bucket = home.root, bucket

    def place(self, path: Path) -> str:
        return f"{self._bucket.address}/{self._name(path)}"

    def exists(self, path: Path) -> bool:
        return self._bucket.look(self._name(path)) is not None

    def put(self, temporary: Path, path: Path) -> None:
        with suppress(ConflictError):  # the first part wins
            self._bucket.put_file(self._name(path), temporary, None)

    @contextmanager
    def opened(self, path: Path) -> Iterator[Path | None]:
        make_folders(path.parent)
        copy = temporary_path(path)
        try:
            yield copy if self._bucket.fetch(self._name(path), copy) else None
        finally:
            copy.unlink(missing_ok=True)

    def remove(self, path: Path) -> None:
        with suppress(StoreError):  # the error that a damaged part is reported by says more
            self._bucket.delete(self._name(path))

    def drop(self, folder: Path) -> None:
        self._folders.remove(folder)
        super().drop(folder)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

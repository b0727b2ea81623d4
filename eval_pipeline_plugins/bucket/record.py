"""The record as objects of a bucket."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from eval_pipeline.core.errors import DamagedFileError, StoreError
from eval_pipeline.store.file_status import FileStatus
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.migrations import MIGRATIONS, Migration
from eval_pipeline.store.parquet.reading import Header, read_header
from eval_pipeline.store.record import FILE, Contents, Record
from eval_pipeline.store.schemas import Table
from eval_pipeline_plugins.bucket.bucket import Bucket, ConflictError
from eval_pipeline_plugins.bucket.mirror import Mirror, object_status

if TYPE_CHECKING:
    from eval_pipeline_plugins.bucket.publisher import MirroredPublisher

_TRIES = 20


class MirroredRecord(Record):
    """The record in a bucket, under the names that its files have in a folder.

    Every look at a file asks the bucket whether the copy on this disk is still that of the object. An object is written
    in one request, if it is the one that was there when writing began.
    """

    def __init__(
        self, root: Path, bucket: Bucket, migrations: Mapping[tuple[str, int], Migration] = MIGRATIONS
    ) -> None:
        """Takes the folder of the copies, and the bucket."""
        super().__init__(root, migrations)
        self.bucket = bucket
        self._mirror = Mirror(root, bucket)

    def publisher(self) -> "type[MirroredPublisher]":  # noqa: D102
        from eval_pipeline_plugins.bucket.publisher import MirroredPublisher

        return MirroredPublisher

    def place(self, table: Table, key: RecordKey) -> str:  # noqa: D102 as in `Record`, like those below
        return f"{self._mirror.bucket.address}/{self._mirror.name(self.path(table, key))}"

    def status(self, table: Table, key: RecordKey) -> FileStatus | None:  # noqa: D102
        return object_status(self._mirror.bucket.look(self._mirror.name(self.path(table, key))))

    def states(self, tables: Sequence[Table], key: RecordKey) -> list[list[int] | None]:  # noqa: D102
        return [None if (found := self.status(table, key)) is None else list(found) for table in tables]

    def header(self, table: Table, key: RecordKey) -> Header | None:  # noqa: D102
        with self._named():
            return super().header(table, key)

    def row_groups(  # noqa: D102
        self,
        table: Table,
        key: RecordKey,
        columns: Sequence[str] | None = None,
        chosen: Collection[int] | None = None,
    ) -> Iterator[pa.Table]:
        with self._named():
            groups = super().row_groups(table, key, columns, chosen)
            try:
                first = next(groups, None)
            except DamagedFileError:  # perhaps only the copy
                self._mirror.update(self.path(table, key), anew=True)
                groups = super().row_groups(table, key, columns, chosen)
                first = next(groups, None)
            if first is not None:
                yield first
            yield from groups

    def verify(self, table: Table, key: RecordKey) -> Header:  # noqa: D102
        with self._named():
            try:
                return super().verify(table, key)
            except DamagedFileError:  # perhaps only the copy
                return self.examine(table, key)

    def examine(self, table: Table, key: RecordKey) -> Header:  # noqa: D102
        with self._named():
            self._mirror.update(self.path(table, key), anew=True)
            return super().verify(table, key)

    def rewrite(self, table: Table, key: RecordKey, make: Callable[[], Contents | None]) -> None:  # noqa: D102
        name = self._mirror.name(self.path(table, key))
        for _ in range(_TRIES):
            found = self._mirror.bucket.look(name)  # before `make` reads it, so that what it has not seen is not lost
            made = make()
            if made is None:
                return
            try:
                with self._writer(table, key, made[0], "", None if found is None else found.etag) as writer:
                    writer.write(made[1])
            except ConflictError:
                continue
            return
        raise StoreError(f"{self.place(table, key)} is being written by other hosts all the time; run again")

    def duplicate(self, table: Table, key: RecordKey, to: RecordKey) -> None:  # noqa: D102
        self._mirror.update(self.path(table, key))
        super().duplicate(table, key, to)

    def set_aside(self, table: Table, key: RecordKey, folder: Path) -> None:  # noqa: D102
        super().set_aside(table, key, folder)
        self.remove(table, key)

    def remove(self, table: Table, key: RecordKey) -> bool:  # noqa: D102
        path = self.path(table, key)
        there = self._mirror.bucket.look(self._mirror.name(path)) is not None
        self._mirror.note_removal()
        self._mirror.bucket.delete(self._mirror.name(path))
        self._mirror.drop(path)
        return there

    def _before_writing(self, path: Path) -> str | None:
        found = self._mirror.update(path)
        return None if found is None else found.etag

    def _put(self, temporary: Path, path: Path, before: str | None) -> None:
        self._mirror.put(temporary, path, before)

    def _header_at(self, path: Path) -> Header | None:
        self._mirror.update(path)
        try:
            return read_header(path)
        except DamagedFileError:
            self._mirror.update(path, anew=True)
            return read_header(path)

    def _listed(self, table: Table, wanted: tuple[str | None, ...]) -> Iterator[tuple[tuple[str, ...], FileStatus]]:
        known: list[str] = []
        for folder in wanted:
            if folder is None:
                break
            known.append(folder)
        for found in self._mirror.bucket.list("/".join([self.root.name, table.name, *known])):
            *folders, file = found.name.split("/")[2:] or [""]
            status = object_status(found)
            if file == FILE and status is not None:
                yield tuple(folders), status

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Names the object instead of its copy in errors about damage."""
        try:
            yield
        except DamagedFileError as error:
            address = f"{self._mirror.bucket.address}/{self.root.name}"
            raise DamagedFileError(str(error).replace(f"{self.root}{os.sep}", f"{address}/")) from error

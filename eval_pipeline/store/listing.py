"""Which files of the record belong to the published store, and which of them it does not hold yet."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.durable import write_error
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.memo import FileStatus, Published, file_status
from eval_pipeline.store.record import Record
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.snapshot import Change, SourceFile
from eval_pipeline.store.tables import all_tables, arrow_schema


@dataclass(frozen=True, slots=True)
class Found:
    """A file of the record, for one published table.

    Attributes:
        table: the published table.
        source: the table of the record.
        status: of the file before anything was read from it; None where there is none (any more).
    """

    table: Table
    source: Table
    key: RecordKey
    status: FileStatus | None


class Listing:
    """The record's files as they are now.

    With `changed`, of these keys only, those that are gone included; the others are taken to be as published.
    """

    def __init__(
        self, record: Record, track_tables: Sequence[Table], changed: Collection[RecordKey] | None = None
    ) -> None:
        self._record = record
        self._tables = all_tables(track_tables)
        self.complete = changed is None
        files = self._all() if changed is None else self._of(changed)
        self.files = {self._relative(found): found for found in files}

    def fresh(self, memo: Mapping[str, Published]) -> dict[str, Published]:
        """Path → file as it is now, for those that the memo does not know as they are."""
        fresh = {}
        for name, found in self.files.items():
            if found.status is not None and (name not in memo or memo[name].status != found.status):
                header = self._record.verify(found.source, found.key)
                fresh[name] = Published(found.status, header.content_hash)
        return fresh

    def gone(self, memo: Mapping[str, Published]) -> set[str]:
        """Paths that the memo knows and that are not there any more."""
        present = {name for name, found in self.files.items() if found.status is not None}
        return {name for name in memo if name not in present and (self.complete or name in self.files)}

    def changes(
        self, before: Mapping[str, Published], now: Mapping[str, Published], workspace: Path
    ) -> tuple[list[Change], list[tuple[Table, RecordKey]]]:
        """What makes a store of the files `before` one of the files `now`.

        Returns:
            Tables and keys to replace, and those among them that have no files any more.
        """
        names = {name for name in before.keys() | now.keys() if _hash(before, name) != _hash(now, name)}
        dirty = {(found.table.name, found.key): found for found in map(self._found, names) if found is not None}
        for table in self._tables:
            # A prompt that nothing referred to was dropped; it is needed again when its attempts come back.
            for name, key in list(dirty):
                if table.key == "shared" and name == table.referenced_by:
                    dirty[table.name, key] = replace(dirty[name, key], table=table)
        changes = []
        for found in dirty.values():
            sources = found.table.record_tables()
            paths = [self._relative(replace(found, source=source)) for source in sources]
            files = [
                self._source_file(found, source, path, now[path].content_hash, workspace)
                for source, path in zip(sources, paths, strict=True)
                if path in now
            ]
            changes.append(Change(found.table, found.key, files))
        removed = [(change.table, change.key) for change in changes if not change.files]
        return changes, removed

    def _all(self) -> Iterator[Found]:
        for table in self._tables:
            for source in table.record_tables():
                for key, status in self._record.files(source):
                    yield Found(table, source, key, file_status(status))

    def _of(self, keys: Collection[RecordKey]) -> Iterator[Found]:
        for table in self._tables:
            for source in table.record_tables():
                for key in keys:
                    if not key.fits(source):
                        continue
                    try:
                        status = file_status(self._record.path(source, key).stat())
                    except FileNotFoundError:
                        yield Found(table, source, key, None)
                    else:
                        yield Found(table, source, key, status)

    def _relative(self, found: Found) -> str:
        return self._record.path(found.source, found.key).relative_to(self._record.root).as_posix()

    def _found(self, name: str) -> Found | None:
        """The file of that path, also where it is gone; None for one of a table that is no more."""
        if name in self.files:
            return self.files[name]
        for table in self._tables:
            for source in table.record_tables():
                if name.startswith(f"{source.name}/"):
                    key = self._record.key_of(source, name)
                    return Found(table, source, key, None) if key else None
        return None

    def _source_file(
        self, found: Found, source: Table, name: str, content_hash: str, workspace: Path
    ) -> SourceFile:
        place = self._record.path(source, found.key)
        header = self._record.header(source, found.key)
        if header is None:
            raise StoreError(f"{place} was removed while it was published; publish again")
        if header.schema_hash != source.schema_hash():
            place = self._migrated(source, found.key, workspace)
        return SourceFile(found.table, source.name, found.key, name, place, content_hash)

    def _migrated(self, source: Table, key: RecordKey, workspace: Path) -> Path:
        """A copy of an older file in today's schema, so that there is one way into the store."""
        workspace.mkdir(exist_ok=True)
        place = workspace / f"{len(list(workspace.iterdir()))}.parquet"
        try:
            with pq.ParquetWriter(place, arrow_schema(source), compression="lz4") as writer:
                for rows in self._record.row_groups(source, key):
                    writer.write_table(rows)
        except OSError as error:
            raise write_error(place, error) from error
        return place


def _hash(files: Mapping[str, Published], name: str) -> str | None:
    return files[name].content_hash if name in files else None

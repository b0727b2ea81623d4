"""Lists the record's files, and compares them with the files from which the store was published."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.durable import write_error
from eval_pipeline.store.file_status import FileStatus
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.published.changes import Change, SourceFile
from eval_pipeline.store.published.memo import KnownFile
from eval_pipeline.store.record import Header, Record
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import all_tables, arrow_schema, earlier_tables, published_tables

Refusal = Callable[[RecordKey], str | None]
"""Returns why a partition must not be published, to complete a sentence about it; None if it may be published."""

Files = Mapping[str, FileStatus | None]
"""Path below the record → status of the file, None if it does not exist."""


class Gate:
    """Decides which partitions may be published, and remembers the reasons for the others.

    Args:
        refuse: returns why a partition may not be published; by default, all may.
        trusted: keys that are not checked.
    """

    def __init__(self, refuse: Refusal | None = None, trusted: Collection[RecordKey] = ()) -> None:
        self._refuse = refuse
        self._trusted = trusted
        self._reasons: dict[RecordKey, str] = {}

    def guards(self, key: RecordKey) -> bool:
        """Whether `refuse` must be called for the key; never for tables without a date."""
        return self._refuse is not None and key.eval_date is not None and key not in self._trusted

    def shut(self, key: RecordKey) -> bool:
        """Whether the partition must not be published; once refused, it stays refused."""
        if self._refuse is None or not self.guards(key):
            return False
        if key not in self._reasons and (why := self._refuse(key)) is not None:
            self._reasons[key] = why
        return key in self._reasons

    def close(self, keys: Collection[RecordKey], why: str) -> None:
        """Refuses the keys from now on."""
        self._reasons |= dict.fromkeys(keys, why)

    @property
    def left_out(self) -> tuple[tuple[RecordKey, str], ...]:
        """The refused partitions with the reasons."""
        return tuple(self._reasons.items())


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of the record, and the published table that it belongs to.

    Attributes:
        table: the published table.
        source: the table of the record.
        status: status of the file before anything was read from it; None if it does not exist (any more).
    """

    table: Table
    source: Table
    key: RecordKey
    status: FileStatus | None


class Listing:
    """The record's files as they are now.

    With `changed`, only files with these keys are listed, including those that no longer exist. All others are assumed
    to be published already, and so are partitions that the gate refuses.
    """

    def __init__(
        self,
        record: Record,
        track_tables: Sequence[Table],
        gate: Gate,
        changed: Collection[RecordKey] | None = None,
    ) -> None:
        self._record = record
        self._gate = gate
        tables = all_tables(track_tables)
        self._tables = published_tables(track_tables)
        self._sources = _by_source(tables)
        self._earlier = _by_source(earlier_tables(tables))
        self.complete = changed is None
        files = self._all() if changed is None else self._of(changed)
        self._headers: dict[str, Header] = {}
        self._open: dict[RecordKey, bool] = {}
        self.files = {self._relative(found): found for found in files}

    def fresh(self, memo: Mapping[str, KnownFile]) -> dict[str, KnownFile]:
        """Returns the files that are new or have changed since the memo, by path."""
        fresh = {}
        for name, found in self.files.items():
            if found.status is not None and (name not in memo or memo[name].status != found.status):
                if not self._let_in(found.key):
                    continue
                header = self._record.verify(found.source, found.key)
                fresh[name] = KnownFile(found.status, header.content_hash, found.key)
                self._headers[name] = header
        return fresh

    def gone(self, memo: Mapping[str, KnownFile]) -> set[str]:
        """Returns the paths that are in the memo but no longer exist."""
        present = {name for name, found in self.files.items() if found.status is not None}
        gone = {name for name in memo if name not in present and (self.complete or name in self.files)}
        # A partition is published completely or not at all, even if only some of its files exist.
        partly = {self.files[name].key for name in present}
        return {name for name in gone if memo[name].key not in partly or self._let_in(memo[name].key)}

    def moved(self) -> set[RecordKey]:
        """Returns the accepted partitions whose files have changed since they were listed.

        If there are none, the files were the same before and after the gate's check, so the gate judged a consistent
        state.
        """
        keys = {key for key, is_open in self._open.items() if is_open and self._gate.guards(key)}
        now = {self._relative(found): found for found in self._of(keys)}
        listed = {name: found for name, found in self.files.items() if found.key in keys}
        return {
            (listed.get(name) or now[name]).key
            for name in listed.keys() | now.keys()
            if _status(listed, name) != _status(now, name)
        }

    def _let_in(self, key: RecordKey) -> bool:
        """Asks the gate about the key, once after the files were listed."""
        if key not in self._open:
            self._open[key] = not self._gate.shut(key)
        return self._open[key]

    def changes(self, before: Mapping[str, KnownFile], now: Mapping[str, KnownFile], workspace: Path) -> list[Change]:
        """Computes the changes that turn a store of the files `before` into a store of the files `now`.

        Args:
            before: path below the record → file; a missing path has no rows in the store.
            now: the same after publishing.
            workspace: folder for copies of older files, migrated to the current schema.
        """
        dirty = {}
        for name in before.keys() | now.keys():
            if _hash(before, name) != _hash(now, name):
                found = self._found(name, (now.get(name) or before[name]).key)
                dirty[found.table.name, found.key] = found
        for table in self._tables:
            # Prompts are dropped when no attempt refers to them, so they must be added again when their attempts come
            # back.
            for name, key in list(dirty):
                if table.key == "shared" and name == table.referenced_by:
                    dirty[table.name, key] = replace(dirty[name, key], table=table)
        changes = []
        for found in dirty.values():
            sources = found.table.record_tables()
            paths = [self._relative(replace(found, source=source)) for source in sources]
            files = tuple(
                self._source_file(found, source, path, now[path].content_hash, workspace)
                for source, path in zip(sources, paths, strict=True)
                if path in now
            )
            changes.append(Change(found.table, found.key, files, tuple(path for path in paths if path in before)))
        return changes

    def _all(self) -> Iterator[ListedFile]:
        for table, source in self._sources.values():
            for key, status in self._record.files(source):
                yield ListedFile(table, source, key, status)
        for table, source in self._earlier.values():
            for key, status in self._record.files(source, earlier=True):
                yield ListedFile(table, source, key, status)

    def _of(self, keys: Collection[RecordKey]) -> Iterator[ListedFile]:
        for key in keys:
            for table, source in (self._earlier if key.evaluation else self._sources).values():
                if key.fits(source):
                    yield ListedFile(table, source, key, self._record.status(source, key))

    def _relative(self, found: ListedFile) -> str:
        return self._record.path(found.source, found.key).relative_to(self._record.root).as_posix()

    def _found(self, name: str, key: RecordKey) -> ListedFile:
        """Returns the listed file of that path; a deleted file has no status."""
        table, source = (self._earlier if key.evaluation else self._sources)[name.partition("/")[0]]
        return self.files.get(name) or ListedFile(table, source, key, None)

    def _source_file(
        self, found: ListedFile, source: Table, name: str, content_hash: str, workspace: Path
    ) -> SourceFile:
        place = self._record.path(source, found.key)
        header = self._headers.get(name) or self._record.header(source, found.key)
        if header is None:
            raise StoreError(f"{place} was removed while it was published; publish again")
        if header.schema_hash != source.schema_hash():
            place = self._migrated(source, found.key, workspace)
        told = (header.rows, header.run_id, header.size)
        return SourceFile(found.table, source.name, found.key, name, place, content_hash, *told)

    def _migrated(self, source: Table, key: RecordKey, workspace: Path) -> Path:
        """Writes a copy of an older file in the current schema, so that all files are loaded in the same way."""
        workspace.mkdir(exist_ok=True)
        place = workspace / f"{len(list(workspace.iterdir()))}.parquet"
        try:
            with pq.ParquetWriter(place, arrow_schema(source), compression="lz4") as writer:
                for rows in self._record.row_groups(source, key):
                    writer.write_table(rows)
        except OSError as error:
            raise write_error(place, error) from error
        return place


def files_of(record: Record, track_tables: Sequence[Table], key: RecordKey) -> Files:
    """Returns the present state of the files of a key, to see later whether any of them has changed."""
    listing = Listing(record, track_tables, Gate(), [key])
    return {name: found.status for name, found in listing.files.items()}


def verify_files(record: Record, track_tables: Sequence[Table], key: RecordKey) -> None:
    """Raises StoreError if one of the files of a key is damaged."""
    Listing(record, track_tables, Gate(), [key]).fresh({})


def _by_source(tables: Sequence[Table]) -> dict[str, tuple[Table, Table]]:
    """Returns the published table and the table of the record for each name of the latter."""
    return {source.name: (table, source) for table in tables for source in table.record_tables()}


def _status(files: Mapping[str, ListedFile], name: str) -> FileStatus | None:
    return files[name].status if name in files else None


def _hash(files: Mapping[str, KnownFile], name: str) -> str | None:
    return files[name].content_hash if name in files else None

"""Publishing: updates `eval.duckdb` from the record, so that readers never see a half-finished store.

Under a lock, the last store is copied, the partitions that differ are replaced in the copy, and the copy is renamed
over the store. Programs that have the old file open keep a consistent old snapshot.
"""

import fcntl
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.hashing.kept import kept
from eval_pipeline.core.system.memory import give_back_memory
from eval_pipeline.store.catalog import sweeping
from eval_pipeline.store.durable import fsync_path, replace_durably
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.listing import Gate, Listing, Refusal
from eval_pipeline.store.published.changes import Change, ordered
from eval_pipeline.store.published.ddl import FORMAT, schema_hash, schema_sql
from eval_pipeline.store.published.engine import engine
from eval_pipeline.store.published.form import FILE, store_form
from eval_pipeline.store.published.memo import Memo, content_of, refuse_newer, store_status
from eval_pipeline.store.published.publisher import MovedError, Publisher, PublishResult, UnusableError
from eval_pipeline.store.published.snapshot import STORAGE_VERSION, opened
from eval_pipeline.store.record import Record
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import published_tables

_FICLONE = 0x40049409
_COMPACT_ABOVE = 0.4
_LOCK_SECONDS = 600.0
_MEMORY_MB = (64, 512)
"""Memory limits for DuckDB, tried in turn, each from the start: 10,000 answers in finqa need more than 32 MB.

The first suffices for rows of 100 KB, which are written in parts.
"""


def publish(
    record: Record,
    out: Path,
    track_tables: Sequence[Table],
    changed: Collection[RecordKey] | None = None,
    refuse: Refusal | None = None,
    *,
    trusted: Collection[RecordKey] | None = None,
    lock_seconds: float = _LOCK_SECONDS,
    erase: bool = False,
) -> PublishResult:
    """Brings the published store up to date; very cheap if nothing has changed.

    A store that is missing, damaged, changed by another program or of another schema is rebuilt.

    Args:
        record: the source of the rows.
        out: the store file.
        track_tables: the tables of the tracks, as made by `track_turns_table`.
        changed: publish only these keys (including deleted files) and leave what other runs are just writing to them;
            by default, everything is published.
        refuse: returns why a new or changed partition must not be published; not called for trusted keys.
        trusted: keys that are published in any case; by default those in `changed`.
        lock_seconds: how long to wait for another publisher.
        erase: rewrite the store compactly in any case, so that no byte of removed rows remains in the file.

    Raises:
        StoreError: a file of the record is damaged, the disk is full, or the lock could not be acquired. The store is
            then unchanged.
    """
    gate = Gate(refuse, (changed or ()) if trusted is None else trusted)
    publisher = _publisher(record)(record, out, track_tables, gate, erase=erase)
    return publisher.run(changed, full=False, lock_seconds=lock_seconds)


def publish_full(
    record: Record,
    out: Path,
    track_tables: Sequence[Table],
    refuse: Refusal | None = None,
    *,
    lock_seconds: float = _LOCK_SECONDS,
) -> PublishResult:
    """Rebuilds the published store from the record alone. Arguments and errors are those of `publish`."""
    return _publisher(record)(record, out, track_tables, Gate(refuse)).run(None, full=True, lock_seconds=lock_seconds)


def _publisher(record: Record) -> type[Publisher]:
    """Returns what publishes where the record is, in the form that the environment names."""
    if own := record.publisher():
        return own
    if store_form() == FILE:
        return _FilePublisher
    from eval_pipeline.store.catalog.publisher import CatalogPublisher

    return CatalogPublisher


class _FilePublisher(Publisher):
    def __init__(
        self, record: Record, out: Path, track_tables: Sequence[Table], gate: Gate, *, erase: bool = False
    ) -> None:
        super().__init__(record, out, track_tables, gate, erase=erase)
        self._compact = out.with_name(f"{out.name}.new.compact")
        self._schema = schema_sql(track_tables)
        self._schema_hash = schema_hash(self._schema)

    def _publish(self, lock: int, changed: Collection[RecordKey] | None, *, full: bool) -> PublishResult:
        memo = Memo.load(lock)
        store = store_status(self._out)
        if full or store is None:
            return self._rebuild(lock, "")
        refuse_newer(self._out, memo, FORMAT)
        if memo is None or not memo.describes(self._out):
            return self._rebuild(lock, f"{self._out.name} was not as the last publisher left it")
        if memo.schema != self._schema_hash:
            return self._rebuild(lock, "the tables have another schema now")
        return self._update(lock, replace(memo, store=store), changed)

    def _update(self, lock: int, memo: Memo, changed: Collection[RecordKey] | None) -> PublishResult:
        try:
            known = memo.known(changed)
        except (ValueError, TypeError) as error:
            return self._rebuild(lock, f"what is known of {self._out.name} was damaged ({error})")
        listing = Listing(self._record, self._track_tables, self._gate, changed)
        fresh, gone = listing.fresh(known), listing.gone(known)
        if not fresh and not gone and not self._erase:
            return PublishResult(self._out)
        now = {name: file for name, file in known.items() if name not in gone} | fresh
        memo = memo.with_known(now, changed)
        self._clear()
        try:
            changes = listing.changes(known, now, self._workspace)
            if not changes and not self._erase:
                memo.save(lock)
                return PublishResult(self._out)
            result = self._write(lock, listing, changes, memo, fresh=False)
        except UnusableError as error:
            return self._rebuild(lock, f"{self._out.name} was damaged ({error})")
        finally:
            self._clear()
        return result

    def _rebuild(self, lock: int, note: str) -> PublishResult:
        listing = Listing(self._record, self._track_tables, self._gate)
        now = listing.fresh({})
        self._clear()
        try:
            changes = listing.changes({}, now, self._workspace)
            memo = Memo((0, 0), FORMAT, self._schema_hash, {}).with_known(now)
            result = self._write(lock, listing, changes, memo, fresh=True)
        except UnusableError as error:
            raise StoreError(f"cannot publish to {self._out}: {error}") from error
        finally:
            self._clear()
        return replace(result, full=True, note=note)

    def _write(
        self, lock: int, listing: Listing, changes: Sequence[Change], memo: Memo, *, fresh: bool
    ) -> PublishResult:
        """Applies the changes to a copy and renames it over the store; `memo` describes the result."""
        changes = ordered(changes, self._track_tables)
        write = partial(self._write_within, changes, fresh=fresh)
        rows, target = self._with_memory(_MEMORY_MB, write)
        if moved := listing.moved():
            raise MovedError(moved)
        had_catalog = sweeping.was_catalog(self._out)
        if had_catalog:
            sweeping.before_replacing(self._out)
        self._put_in_place(target)
        if had_catalog:
            sweeping.after_replacing(self._out, erase=self._erase)
        status = store_status(self._out)
        if status is not None:
            replace(memo, store=status, content=content_of(self._out)).save(lock)
        removed = sum(not change.files for change in changes)
        return PublishResult(
            self._out,
            tables=tuple(dict.fromkeys(change.table.name for change in changes)),
            partitions_replaced=len(changes) - removed,
            partitions_removed=removed,
            rows=rows,
            compacted=target == self._compact,
        )

    def _write_within(self, changes: Sequence[Change], memory_mb: int | None, *, fresh: bool) -> tuple[int, Path]:
        """Writes the changes; returns the number of rows added and the file written."""
        self._clear_files()
        if fresh:
            _write_empty_store(self._new, self._schema, self._schema_hash, memory_mb)
        else:
            _copy(self._out, self._new)
        with engine(self._new, memory_mb) as connection, opened(connection, self._new) as snapshot:
            rows = snapshot.apply(changes, published_tables(self._track_tables))
            if fresh or (not self._erase and snapshot.free_share() <= _COMPACT_ABOVE):
                return rows, self._new
            snapshot.compact(self._compact)
            return rows, self._compact

    def _put_in_place(self, target: Path) -> None:
        log = target.with_name(f"{target.name}.wal")
        if log.exists():
            raise StoreError(f"DuckDB left {log} behind, so {target} is incomplete; publish again")
        fsync_path(target)
        # A program that was killed with the store open for writing left a write-ahead log, which does not fit the new
        # file.
        self._out.with_name(f"{self._out.name}.wal").unlink(missing_ok=True)
        replace_durably(target, self._out)

    def _clear(self) -> None:
        """Removes temporary files of this or a killed publisher; under the lock, no one else uses them."""
        shutil.rmtree(self._workspace, ignore_errors=True)
        self._clear_files()

    def _clear_files(self) -> None:
        for path in self._out.parent.glob(f"{self._out.name}.new*"):
            with suppress(OSError):  # the workspace is a folder, which unlink cannot remove
                path.unlink()


def _copy(source: Path, target: Path) -> None:
    """Copies a file, sharing its blocks if the file system supports it."""
    with source.open("rb") as old, target.open("wb") as new, suppress(OSError):
        fcntl.ioctl(new.fileno(), _FICLONE, old.fileno())
        return
    shutil.copyfile(source, target)


def _write_empty_store(path: Path, schema: str, schema_hash: str, memory_mb: int | None) -> None:
    """Writes a store with that schema and no rows to a file that does not exist yet.

    Making one takes DuckDB a quarter of a CPU second, so each is made once.

    Args:
        path: the new file.
        schema: SQL that creates the schema.
        schema_hash: its hash, which is stored with it.
        memory_mb: DuckDB's memory limit.
    """
    import duckdb

    def made() -> bytes:
        with engine(path, memory_mb) as connection, opened(connection, path) as snapshot:
            snapshot.create(schema, schema_hash)
        give_back_memory()  # what parsing the schema took is needed for the rows
        if path.with_name(f"{path.name}.wal").exists():
            raise StoreError(f"DuckDB left {path}.wal behind, so {path} is incomplete; publish again")
        return path.read_bytes()

    path.write_bytes(kept("store", [schema_hash, duckdb.__version__, STORAGE_VERSION], made))

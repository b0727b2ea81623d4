"""Publishes the record as a catalog: what is written follows what has changed, not the size of the store."""

import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.catalog import manifests, sweeping
from eval_pipeline.store.catalog.manifests import CatalogPart, DamagedManifestError, Manifests
from eval_pipeline.store.catalog.parts import FILES, Facts, PartWriter
from eval_pipeline.store.catalog.views import catalog_hash, write_catalog
from eval_pipeline.store.durable import fsync_path, replace_durably
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.listing import Gate, Listing
from eval_pipeline.store.published.changes import Change, ordered
from eval_pipeline.store.published.ddl import FORMAT
from eval_pipeline.store.published.engine import engine
from eval_pipeline.store.published.form import catalog_folder
from eval_pipeline.store.published.memo import KnownFile, Memo, refuse_newer, store_status
from eval_pipeline.store.published.publisher import MovedError, Publisher, PublishResult, UnusableError
from eval_pipeline.store.record import Record
from eval_pipeline.store.schemas import EARLIER_SCHEMA, Table
from eval_pipeline.store.tables import MODEL_VERSIONS, published_tables

_PLACE = b"parts"
_MEMORY_MB = (64, 512)
"""Memory limits for DuckDB, tried in turn: it collects thousands of rows before it writes them.

The first suffices for prompts of 5 KB, the second for 50 KB.
"""
_OTHER = "the tables have another schema now, or EVAL_STORE another value"
Parts = dict[RecordKey, dict[str, CatalogPart | None]]


class CatalogPublisher(Publisher):
    """Writes parts, then manifests, then the catalog, which readers open; each step replaces whole files."""

    def __init__(
        self, record: Record, out: Path, track_tables: Sequence[Table], gate: Gate, *, erase: bool = False
    ) -> None:
        super().__init__(record, out, track_tables, gate, erase=erase)
        folder = catalog_folder(out).resolve()  # one place, by whichever link the home is named
        self._parts, self._manifests, self._retired = folder / "parts", folder / "manifests", folder / "retired"
        self._hash = catalog_hash(track_tables)

    def _publish(self, lock: int, changed: Collection[RecordKey] | None, *, full: bool) -> PublishResult:
        memo = Memo.load(lock)
        if full:
            return self._rebuild(lock, "")
        refuse_newer(self._out, memo, FORMAT)
        if memo is None or memo.schema != self._hash:
            there = self._out.exists()
            return self._rebuild(lock, _OTHER if there else "")
        try:
            state = Manifests.load(self._manifests, self._hash)
            is_current = memo == memo_of(state, self._out, self._hash)
            # After a crash between two manifests, what it was about may be half in them.
            return self._update(lock, state, changed if is_current else None, is_current=is_current)
        except (DamagedManifestError, UnusableError) as error:
            return self._rebuild(lock, f"{self._out.name} was damaged ({error})")
        finally:
            self._clear()

    def _rebuild(self, lock: int, note: str) -> PublishResult:
        try:
            published = self._update(lock, Manifests({}), None, is_current=False)
        except UnusableError as error:
            raise StoreError(f"cannot publish to {self._out}: {error}") from error
        finally:
            self._clear()
        return replace(published, full=True, note=note)

    def _update(
        self, lock: int, state: Manifests, changed: Collection[RecordKey] | None, *, is_current: bool
    ) -> PublishResult:
        """Publishes what differs from `state`; `is_current` says whether the catalog is the one of it."""
        known = state.known(changed)
        listing = Listing(self._record, self._track_tables, self._gate, changed)
        fresh, gone = listing.fresh(known), listing.gone(known)
        if is_current and not fresh and not gone and not self._erase:
            return PublishResult(self._out)
        now = {name: file for name, file in known.items() if name not in gone} | fresh
        self._clear()
        changes = ordered(listing.changes(known, now, self._workspace), self._track_tables)
        parts = self._with_memory(_MEMORY_MB, partial(self._write_parts, changes, now, state))
        if moved := listing.moved():
            raise MovedError(moved)
        self._swap(lock, state.replaced(now, changed, parts), relink=bool(changes) or not is_current)
        removed = sum(not change.files for change in changes)
        return PublishResult(
            self._out,
            tables=tuple(dict.fromkeys(change.table.name for change in changes)),
            partitions_replaced=len(changes) - removed,
            partitions_removed=removed,
            rows=sum(part.rows for mine in parts.values() for part in mine.values() if part and part.table != FILES),
        )

    def _write_parts(
        self, changes: Sequence[Change], now: Mapping[str, KnownFile], state: Manifests, memory_mb: int | None
    ) -> Parts:
        """Writes the parts of the changes; returns those that differ, by key and table."""
        made: Parts = {change.key: {} for change in changes}

        def part(key: RecordKey, table: str) -> CatalogPart | None:
            return made[key][table] if table in made.get(key, {}) else state.parts_of(key).get(table)

        with engine(self._new, memory_mb) as connection:
            writer = PartWriter(connection, self._parts)
            for change in changes:
                key, table = change.key, change.table
                described = part(RecordKey(model_version=key.model_version), MODEL_VERSIONS.name)
                referring = part(key, table.referenced_by)
                made[key][table.name] = writer.write(change, described, referring)
            for key, rows in _facts(changes, now, published_tables(self._track_tables)).items():
                made[key][FILES] = writer.write_files(rows)
        return made

    def _swap(self, lock: int, after: Manifests, *, relink: bool) -> None:
        """Makes `after` the published state: manifests, then catalog, then what is known of both."""
        if relink:
            self._prepare_link(after)
        manifests.save(self._manifests, after.texts(self._hash))
        if relink:
            self._put_link()
        memo_of(after, self._out, self._hash).save(lock)
        sweeping.sweep(self._parts, self._retired, after.places(), erase=self._erase)

    def _prepare_link(self, after: Manifests) -> None:
        """Writes the new catalog aside, and keeps the old one for those who have it open."""
        self._with_memory(_MEMORY_MB, partial(self._write_catalog, after))
        fsync_path(self._new)
        if any(manifests.manifest_files(self._manifests)):  # else the store was one file, which needs no parts
            dropped = set(sweeping.part_files(self._parts)) - after.places()
            sweeping.retire(self._retired, self._out, dropped)

    def _put_link(self) -> None:
        self._out.with_name(f"{self._out.name}.wal").unlink(missing_ok=True)
        replace_durably(self._new, self._out)

    def _write_catalog(self, state: Manifests, memory_mb: int | None) -> None:
        write_catalog(self._new, self._track_tables, state.parts(), self._parts, memory_mb)

    def _clear(self) -> None:
        """Removes temporary files of this or a killed publisher; under the lock, no one else uses them."""
        shutil.rmtree(self._workspace, ignore_errors=True)
        self._new.unlink(missing_ok=True)


def memo_of(state: Manifests, store: Path, schema: str) -> Memo:
    """Returns what the lock file says if this state is published, and the store has not been moved since."""
    lines = {_PLACE: str(catalog_folder(store).resolve()).encode(), **manifests.digests(state.texts(schema))}
    return Memo(store_status(store) or (0, 0), FORMAT, schema, lines)


def _facts(changes: Sequence[Change], now: Mapping[str, KnownFile], tables: Sequence[Table]) -> dict[RecordKey, Facts]:
    """Returns the rows of `meta.files` of each changed key."""
    published = {
        (source.name, table.name.startswith(EARLIER_SCHEMA)): table.name
        for table in tables
        for source in table.record_tables()
    }
    facts: dict[RecordKey, list[tuple[object, ...]]] = {change.key: [] for change in changes}
    for path, file in sorted(now.items()):
        if file.key in facts:
            source, key = path.partition("/")[0], file.key
            place = (key.suite, key.model_version, key.eval_date)
            facts[key].append((published[source, bool(key.evaluation)], source, *place, path, file.content_hash))
    return dict(facts)

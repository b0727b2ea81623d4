"""Publishes a catalog whose parts and manifests are objects; each host has copies of them, and a catalog over these."""

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

from eval_pipeline.core.errors import LockedError, StoreError
from eval_pipeline.store.catalog import sweeping
from eval_pipeline.store.catalog.manifests import (
    CatalogPart,
    DamagedManifestError,
    Manifests,
    NewerManifestError,
    empty_manifest,
    is_manifest,
    manifest_files,
)
from eval_pipeline.store.catalog.parts import digest
from eval_pipeline.store.catalog.publisher import CatalogPublisher, memo_of
from eval_pipeline.store.durable import fsync_path, locked, make_folders, replace_durably, temporary_path
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.published.ddl import FORMAT
from eval_pipeline.store.published.memo import Memo, refuse_newer
from eval_pipeline.store.published.publisher import PublishResult, UnusableError
from eval_pipeline_plugins.bucket.bucket import Bucket, ConflictError, FoundObject
from eval_pipeline_plugins.bucket.mirror import Mirror

if TYPE_CHECKING:
    from eval_pipeline_plugins.bucket.record import MirroredRecord

GRACE = timedelta(days=1)
"""How long a part stays that no manifest names: a reader may just fetch it, or a publisher be about to name it."""
_TRIES = 20


class MirroredPublisher(CatalogPublisher):
    """Uploads parts under the names of their content, then swaps the manifests if nobody else has; else begins again.

    The lock keeps publishers of this host apart. Those of other hosts meet at the manifests.
    """

    _there = Manifests({})
    """Whose parts the bucket is known to have."""
    _was_whole: str | None = None

    def refresh(self, lock_seconds: float) -> None:
        """Makes this host's catalog that of the bucket's manifests; while it is being published, the old one stays.

        Args:
            lock_seconds: how long to wait for a publisher if there is no catalog yet.

        Raises:
            StoreError: the bucket cannot be used, or one of its objects is missing or damaged.
        """
        there = self._out.exists()
        try:
            with locked(self._out.with_name(f"{self._out.name}.lock"), 0 if there else lock_seconds) as lock:
                self._refresh(lock)
        except LockedError:
            if not there:
                raise
        except (DamagedManifestError, DamagedPartError) as error:
            raise StoreError(f"{error}; `eval-pipeline publish --full` makes it anew") from error

    def _refresh(self, lock: int) -> None:
        state = self._pull()
        while (state.lines or self._out.exists()) and Memo.load(lock) != memo_of(state, self._out, self._hash):
            before = self._etags
            try:
                self._fetch_parts(state)
                self._link(lock, state)
            except DamagedPartError:
                state = self._pull()  # parts go when newer manifests do not name them
                if self._etags == before:
                    raise

    def problems(self, before: Callable[[int], None]) -> Iterator[str]:
        """Yields a sentence for each manifest and part in the bucket that is not as it was published.

        Args:
            before: called with the size of each part before it is fetched.
        """
        while True:
            found, seen = list(self._problems(before)), self._etags
            # Another host that has published meanwhile may also have removed parts that the old manifests name.
            if not found or {path.name: now.etag for path, now in self._listed()} == seen:
                yield from found
                return

    def _problems(self, before: Callable[[int], None]) -> Iterator[str]:
        try:
            state = self._pull(anew=True)
        except (DamagedManifestError, NewerManifestError) as error:
            yield str(error)
            return
        for part in _all_parts(state):
            name = self._mirror.name(part.path(self._parts))
            there = self._bucket.look(name)
            before(there.size if there else 0)
            try:
                with TemporaryDirectory(dir=self._manifests.parent) as folder:
                    self._fetch(part, Path(folder) / "part.parquet")
            except DamagedPartError as error:
                yield str(error)

    def _publish(self, lock: int, changed: Collection[RecordKey] | None, *, full: bool) -> PublishResult:
        copies = Mirror(self._record.root, self._bucket)
        copies.tell_removed()
        copies.drop_gone()
        for _ in range(_TRIES):
            try:
                return self._publish_once(lock, changed, full=full)
            except ConflictError:
                continue  # another host has published: its manifests are the ones to change
            finally:
                self._clear()
        raise StoreError(f"{self._bucket.address} is being published by other hosts all the time; publish again")

    def _publish_once(self, lock: int, changed: Collection[RecordKey] | None, *, full: bool) -> PublishResult:
        memo, note = Memo.load(lock), ""
        if not full:
            refuse_newer(self._out, memo, FORMAT)
        try:
            state = self._pull(anew=full)
            if full:
                state = Manifests({})
            self._fetch_parts(state)
            self._there = state
            is_current = not full and memo == memo_of(state, self._out, self._hash)
            # A publisher that was killed between two manifests has left what it was about half in them.
            is_whole = self._is_whole() and not full
            published = self._update(lock, state, changed if is_whole else None, is_current=is_current and is_whole)
            return replace(published, full=full)
        except (DamagedManifestError, DamagedPartError, UnusableError) as error:
            note = f"the catalog of {self._bucket.address} was damaged ({error})"
            self._there = Manifests({})
        except NewerManifestError:
            if not full:
                raise
            self._there = Manifests({})
        try:
            return replace(self._update(lock, Manifests({}), None, is_current=False), full=True, note=note)
        except UnusableError as error:
            raise StoreError(f"cannot publish to {self._out}: {error}") from error

    @property
    def _bucket(self) -> Bucket:
        bucket: Bucket = cast("MirroredRecord", self._record).bucket
        return bucket

    @property
    def _mirror(self) -> Mirror:
        return Mirror(self._manifests.parent, self._bucket)

    def _pull(self, *, anew: bool = False) -> Manifests:
        """Makes the copies of the manifests those of the bucket, and remembers which they are."""
        self._etags: dict[str, str] = {}
        make_folders(self._manifests)
        for path, found in self._listed():
            current = not anew and self._mirror.holds(path, found)
            now = found if current else self._mirror.update(path, anew=True)
            if now is not None:
                self._etags[path.name] = now.etag
        for path in manifest_files(self._manifests):
            if path.name not in self._etags:
                self._mirror.drop(path)
        try:
            return Manifests.load(self._manifests, self._hash)
        except (DamagedManifestError, NewerManifestError) as error:
            there = f"{self._bucket.address}/{self._mirror.name(self._manifests)}"
            raise type(error)(str(error).replace(str(self._manifests), there)) from error

    def _listed(self) -> Iterator[tuple[Path, FoundObject]]:
        """Yields the place of each manifest's copy, and what is known of its object."""
        for found in self._bucket.list(self._mirror.name(self._manifests)):
            path = self._mirror.path(found.name)
            if path.parent == self._manifests and is_manifest(path):
                yield path, found

    def _fetch_parts(self, state: Manifests) -> None:
        """Fetches the parts that this host has no copies of. Raises DamagedPartError."""
        for part in _all_parts(state):
            target = part.path(self._parts)
            if not target.exists():
                self._fetch(part, target)

    def _fetch(self, part: CatalogPart, target: Path) -> None:
        make_folders(target.parent)
        temporary, name = temporary_path(target), self._mirror.name(part.path(self._parts))
        try:
            if self._bucket.fetch(name, temporary) is None:
                raise DamagedPartError(f"{self._bucket.address}/{name} is missing")
            if digest(temporary) != part.name:
                raise DamagedPartError(f"{self._bucket.address}/{name} is damaged")
            replace_durably(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)

    def _swap(self, lock: int, after: Manifests, *, relink: bool) -> None:
        """Makes `after` the published state: parts, then manifests, then this host's catalog of them."""
        self._upload(after)
        texts = after.texts(self._hash)
        for name in self._etags.keys() - texts.keys():
            texts[name] = empty_manifest(self._hash)  # an object cannot be removed on a condition
        for name, text in sorted(texts.items(), reverse=True):  # suites before the model versions
            self._put_manifest(name, text)
        # If another host tells so at the same time, it is not true of these manifests, and the next publisher sees it.
        with suppress(ConflictError):
            self._bucket.put(self._mirror.name(self._whole), self._state_text(), self._was_whole)
        self._link(lock, after)
        self._sweep(after)

    def _upload(self, after: Manifests) -> None:
        """Uploads the parts that the bucket is not known to have."""
        known = self._there.places()
        for part in _all_parts(after):
            if part.place in known:
                continue
            path = part.path(self._parts)
            name = self._mirror.name(path)
            there = self._bucket.look(name)
            # One that is there is written again: it may be damaged, or about to be swept.
            self._bucket.put_file(name, path, None if there is None else there.etag)

    def _put_manifest(self, name: str, text: bytes) -> None:
        path = self._manifests / name
        if name in self._etags and path.exists() and path.read_bytes() == text:
            return
        temporary = temporary_path(path)
        try:
            temporary.write_bytes(text)
            fsync_path(temporary)
            self._etags[name] = self._mirror.put(temporary, path, self._etags.get(name))
        finally:
            temporary.unlink(missing_ok=True)

    def _link(self, lock: int, state: Manifests) -> None:
        """Makes the catalog on this host that of the manifests, whose parts have copies here."""
        self._prepare_link(state)
        self._put_link()
        memo_of(state, self._out, self._hash).save(lock)
        sweeping.sweep(self._parts, self._retired, state.places(), erase=self._erase)

    def _sweep(self, state: Manifests) -> None:
        """Removes the parts from the bucket that no manifest has named for a while; to erase rows, at once."""
        last = self._bucket.look(self._mirror.name(self._swept))
        if last is not None and not self._erase and not _is_old(last.changed):
            return  # all parts are listed, so not with each publishing
        there = [
            found for found in self._bucket.list(self._mirror.name(self._parts)) if sweeping.is_part(Path(found.name))
        ]
        old = [found.name for found in there if self._erase or _is_old(found.changed)]
        if old:
            needed = {self._mirror.name(part.path(self._parts)) for part in _all_parts(self._pull())}
            for name in old:
                if name not in needed:
                    self._bucket.delete(name)
        with suppress(ConflictError):  # another host sweeps, too
            self._bucket.put(
                self._mirror.name(self._swept),
                datetime.now(UTC).isoformat().encode(),
                None if last is None else last.etag,
            )

    def _is_whole(self) -> bool:
        """Whether the manifests are those that one publisher left when it had swapped the last of them."""
        found = self._bucket.read(self._mirror.name(self._whole))
        self._was_whole = None if found is None else found[1].etag
        return found is not None and found[0] == self._state_text()

    def _state_text(self) -> bytes:
        return json.dumps(self._etags, sort_keys=True).encode()

    @property
    def _whole(self) -> Path:
        return self._manifests.parent / "whole"

    @property
    def _swept(self) -> Path:
        return self._manifests.parent / "swept"


class DamagedPartError(StoreError):
    """A part that a manifest names is missing, or its bytes are not those that it is named by."""


def _all_parts(state: Manifests) -> Iterator[CatalogPart]:
    for parts in state.parts().values():
        yield from parts


def _is_old(changed: datetime) -> bool:
    return datetime.now(UTC) - changed > GRACE

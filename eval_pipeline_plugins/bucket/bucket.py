"""A bucket with conditional writes, over obstore."""

import mmap
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.errors import MissingExtraError, StoreError
from eval_pipeline.core.installed.plugins import absent, install
from eval_pipeline.core.system.bucket_address import HOME, BucketAddress, endpoint

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config, S3Store

PATIENCE_S = 30.0
"""How long a request is repeated that the bucket did not answer, or answered with 5xx."""
ANSWER_S = 30.0
"""How long a bucket may take for a small request; a call to it cannot be interrupted from the keyboard."""
_TRANSFER_S = 600.0
_LARGE = 4_000_000
"""From that many bytes on, writing may take longer."""
_PIECE = 1 << 20
_DROP_S = 0.02
_MOST_TRIES = 10
_MOST_SAID = 200


class ConflictError(StoreError):
    """An object is not as it was when the writer looked, so that nothing was written."""


@dataclass(frozen=True, slots=True)
class FoundObject:
    """An object.

    Attributes:
        name: its name below the home's prefix.
        size: its bytes.
        etag: what distinguishes it from one that replaced it.
        changed: when it was written, by the bucket's clock.
    """

    name: str
    size: int
    etag: str
    changed: datetime


class Bucket:
    """The objects below a prefix. Names are relative to it; every method raises StoreError if the bucket fails."""

    def __init__(self, address: BucketAddress) -> None:
        """Does not connect yet. Raises MissingExtraError if the extra `objects` is not installed."""
        if missing := absent(["obstore"]):
            raise MissingExtraError(f"{HOME}={address} needs {', '.join(missing)}; {install('objects')}")
        self.address = address

    def look(self, name: str) -> FoundObject | None:
        """Returns what is known of an object without its bytes; None if there is none."""
        import obstore

        with self._told():
            try:
                return _found(obstore.head(self._small, name))
            except FileNotFoundError:
                return None

    def read(self, name: str) -> tuple[bytes, FoundObject] | None:
        """Returns an object's bytes, and what they belong to; None if there is none."""
        import obstore

        with self._told():
            try:
                got = obstore.get(self._reading, name)
                return bytes(got.bytes()), _found(got.meta)
            except FileNotFoundError:
                return None

    def fetch(self, name: str, target: Path) -> FoundObject | None:
        """Writes an object's bytes into a new file, a piece at a time; returns None if there is none."""
        import obstore

        with self._told():
            try:
                got = obstore.get(self._reading, name)
            except FileNotFoundError:
                return None
            with target.open("xb") as file:
                for piece in got.stream(_PIECE):
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            return _found(got.meta)

    def put(self, name: str, data: bytes, before: str | None) -> str:
        """Writes an object in one request, if it is as it was; returns its new ETag.

        Args:
            name: the object.
            data: its bytes; at most 5 GB, which is what one request can hold.
            before: the ETag of the object to replace; None if there must be none.

        Raises:
            ConflictError: there is another object now, and its bytes are not these; or none any more.
        """
        return self._put(name, data, before)

    def put_file(self, name: str, path: Path, before: str | None) -> str:
        """Writes an object as `put` does, from a file that nobody changes; memory does not follow its size."""
        if path.stat().st_size < _LARGE:
            return self._put(name, path.read_bytes(), before)
        with _mapped(path) as data:
            return self._put(name, data, before)

    def _put(self, name: str, data: bytes | mmap.mmap, before: str | None) -> str:
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        mode: Any = "create" if before is None else {"e_tag": before}
        store = self._small if len(data) < _LARGE else self._writing
        with self._told():
            try:
                # object_store has no condition for uploads in several parts.
                return _etag(obstore.put(store, name, data, mode=mode, use_multipart=False)["e_tag"])
            except (AlreadyExistsError, PreconditionError):
                pass
        # The answer to an earlier try may have been lost: then the object is what this one wanted to write.
        now = self._same(name, data)
        if now is not None:
            return now.etag
        raise ConflictError(f"{self.address}/{name} was written by another host meanwhile; run again")

    def _same(self, name: str, data: bytes | mmap.mmap) -> FoundObject | None:
        """Returns what is known of an object if its bytes are these."""
        import obstore

        with self._told():
            try:
                got = obstore.get(self._reading, name)
            except FileNotFoundError:
                return None
            at, found = 0, _found(got.meta)
            if found.size != len(data):
                return None
            for piece in got.stream(_PIECE):
                told = bytes(piece)
                if data[at : at + len(told)] != told:
                    return None
                at += len(told)
            return found

    def list(self, prefix: str) -> Iterator[FoundObject]:
        """Yields the objects in a folder and below; `prefix` is the folder's name, without a slash at its end."""
        import obstore

        with self._told():
            for chunk in obstore.list(self._small, prefix):
                yield from map(_found, chunk)

    def delete(self, name: str) -> None:
        """Removes an object, if there is one."""
        import obstore

        with self._told():
            obstore.delete(self._small, name)

    @cached_property
    def _small(self) -> "S3Store":
        return self._store({"timeout": timedelta(seconds=ANSWER_S)})

    @cached_property
    def _reading(self) -> "S3Store":
        limits: ClientConfig = {"read_timeout": timedelta(seconds=ANSWER_S)}  # for each piece, not for all
        return self._store(limits | {"timeout": timedelta(seconds=_TRANSFER_S)})

    @cached_property
    def _writing(self) -> "S3Store":
        return self._store({"timeout": timedelta(seconds=_TRANSFER_S)})

    def _store(self, limits: "ClientConfig") -> "S3Store":
        from obstore.store import S3Store

        url = endpoint()
        # Amazon's own endpoint follows from the region; others have the bucket in the path.
        elsewhere: S3Config = {"endpoint": url, "virtual_hosted_style_request": False} if url else {}
        options: ClientConfig = {"allow_http": False}
        if url.startswith("http://"):
            # On loopback, what is in the clear must not go to the proxy of HTTP_PROXY: another one that is never used.
            options = {"allow_http": True, "proxy_url": url, "proxy_excludes": "localhost,127.0.0.0/8,::1"}
        return S3Store(
            self.address.bucket,
            prefix=self.address.prefix or None,
            config=elsewhere,
            client_options=options | limits,
            retry_config={"max_retries": _MOST_TRIES, "retry_timeout": timedelta(seconds=PATIENCE_S)},
        )

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Makes what obstore raises one sentence, without its traces."""
        try:
            yield
        except OSError as error:
            if error.errno is None:  # obstore's, of a bucket that does not exist
                raise self._explained(error) from None
            raise StoreError(f"cannot write a file of {self.address}: {error.strerror}") from error
        except Exception as error:
            if type(error).__module__.partition(".")[0] != "obstore":
                raise
            raise self._explained(error) from None

    def _explained(self, error: Exception) -> StoreError:
        from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

        said = " ".join(str(error).partition("Debug source:")[0].split())
        # What obstore raises for a listing says so only in its text, which may also have other numbers in it.
        if isinstance(error, PermissionDeniedError | UnauthenticatedError) or "status code: 403" in said:
            return StoreError(
                f"the bucket of {self.address} refuses; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION "
                "(docs/scale.md)"
            )
        return StoreError(
            f"the bucket of {self.address} cannot be used; nothing recorded is lost: check AWS_ENDPOINT_URL and the "
            f"server, and start the run again ({said[:_MOST_SAID]})"
        )


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap]:
    """Maps a file. What has been read of it leaves this process soon, and stays in the page cache."""
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    ended = threading.Event()

    def drop() -> None:
        while not ended.wait(_DROP_S):
            data.madvise(mmap.MADV_DONTNEED)

    dropping = threading.Thread(target=drop, daemon=True)
    dropping.start()
    try:
        yield data
    finally:
        ended.set()
        dropping.join()  # not closed: a request that was given up may hold it for a moment longer


def _found(meta: Any) -> FoundObject:
    return FoundObject(meta["path"], meta["size"], _etag(meta["e_tag"]), meta["last_modified"])


def _etag(told: str | None) -> str:
    if not told:
        raise StoreError("the bucket gives its objects no ETags, so that nothing can be written conditionally")
    return told

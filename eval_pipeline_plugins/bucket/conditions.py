"""Whether a bucket honours conditional writes, on which the record and the store rely: hosts that write at once."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from uuid import uuid4

from eval_pipeline.core.errors import StoreError
from eval_pipeline_plugins.bucket.bucket import Bucket, ConflictError

_WRITERS = 4
_ROUNDS = 3


def broken_condition(bucket: Bucket) -> str | None:
    """Lets several write one object at once, first a new one, then in place of it; exactly one may win each time.

    Some stores ignore `If-None-Match` and `If-Match`, and others look at them too early, so that each of two hosts that
    write at once would be told that its figures are stored. A store that is caught only now and then may pass.

    Returns:
        What the bucket did; None if one writer won each time. The objects, in the folder `probe`, are removed.

    Raises:
        StoreError: the bucket cannot be used.
    """
    for _ in range(_ROUNDS):
        name = f"probe/{uuid4().hex}"
        if broken := _broken(bucket, name):
            with suppress(StoreError):  # what was found matters more
                bucket.delete(name)
            return broken
        bucket.delete(name)
    return None


def _broken(bucket: Bucket, name: str) -> str | None:
    if len(first := _written(bucket, name, None)) != 1:
        return f"of {_WRITERS} that wrote one new object at once, {len(first) or 'none'} won, and not one"
    if len(then := _written(bucket, name, first[0])) != 1:
        return f"of {_WRITERS} that replaced one object at once, {len(then) or 'none'} won, and not one"
    return None


def _written(bucket: Bucket, name: str, before: str | None) -> list[str]:
    """Returns the ETags of the writers that were told that they have written."""
    found: list[str] = []

    def write(writer: int) -> None:
        with suppress(ConflictError):
            found.append(bucket.put(name, f"{before} {writer}".encode(), before))

    with ThreadPoolExecutor(_WRITERS) as pool:
        list(pool.map(write, range(_WRITERS)))
    return found

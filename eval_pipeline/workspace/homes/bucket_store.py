"""The published store of a home in a bucket: publishers of all hosts take turns, readers fetch what is new."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from eval_pipeline.core.home import Home
from eval_pipeline.core.system.private import make_private
from eval_pipeline.store.opening import open_record
from eval_pipeline.workspace.homes.locks import held, of_home
from eval_pipeline.workspace.tabled.track_tables import further_tables

if TYPE_CHECKING:
    from eval_pipeline.store.mirrored.publisher import MirroredPublisher

_LOCK_S = 600.0


@contextmanager
def publishing_in_turn(home: Home) -> Iterator[None]:
    """Keeps publishers of other hosts apart, if the home is in a bucket; else the store's own lock is enough."""
    if home.bucket is None:
        yield
        return
    with held(home.root, (of_home("publishing", home),), _LOCK_S):
        yield


def fresh_store(home: Home) -> Path:
    """Returns the store; of a home in a bucket, with what has been published since it was last fetched.

    Raises:
        StoreError: the bucket cannot be used, or an object of the store is missing or damaged.
    """
    if home.bucket is not None:
        make_private(home.root)
        _publisher(home).refresh(_LOCK_S)
    return home.store


def bucket_problems(home: Home, before: Callable[[int], None]) -> Iterator[str]:
    """Yields a sentence for each object of the store that is not as it was published; none without a bucket.

    Args:
        home: the home.
        before: called with the size of each part before it is fetched.
    """
    if home.bucket is not None:
        yield from _publisher(home).problems(before)


def _publisher(home: Home) -> "MirroredPublisher":
    from eval_pipeline.store.listing import Gate
    from eval_pipeline.store.mirrored.publisher import MirroredPublisher

    return MirroredPublisher(open_record(home), home.store, further_tables(), Gate())

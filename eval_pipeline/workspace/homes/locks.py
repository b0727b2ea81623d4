"""Locks by which runs take turns: files below the home's `locks/`, and leases of the database if there is one."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from eval_pipeline.core.errors import LockedError
from eval_pipeline.state.leases import Lease, Leases, lock_name
from eval_pipeline.state.place import state_place
from eval_pipeline.store.durable import locked

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0


@contextmanager
def held(root: Path, parts: Sequence[str], seconds: float) -> Iterator[Lease | None]:
    """Holds a lock that one process at a time can have; yields its lease if it is one of the database.

    Args:
        root: the home.
        parts: names of folders and of the lock.
        seconds: how long to wait for another holder.

    Raises:
        LockedError: another process still holds it after that time.
        StoreError: the file cannot be made, or the database cannot be used.
    """
    leases = state_place().leases()
    if leases is None:
        with locked(lock_path(root, parts), seconds):
            yield None
        return
    give_up = time.monotonic() + seconds
    # The file, too: a run of this home that was started without the database knows nothing of leases.
    with locked(lock_path(root, parts), seconds):
        lease = _taken(leases, lock_name(parts), give_up)
        try:
            yield lease
        finally:
            lease.release()


def lock_path(root: Path, parts: Sequence[str]) -> Path:
    """Returns the file of a lock."""
    return root.joinpath("locks", *parts[:-1], f"{parts[-1]}.lock")


def _taken(leases: Leases, name: str, give_up: float) -> Lease:
    pause = _FIRST_PAUSE_S
    while (lease := leases.take(name)) is None:
        if time.monotonic() + pause > give_up:
            raise LockedError(f"another process has the lease of {name}; wait for it to finish, or end it")
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)
    return lease

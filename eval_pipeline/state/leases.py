"""Leases: locks that several hosts share, as the port knows them, and their names."""

from collections.abc import Mapping, Sequence
from typing import Protocol

PROCESSES = "process/"
"""How the names of leases of processes begin."""

DAEMON = "daemon"
"""The lease of the host that runs Dagster's daemon."""


class Lease(Protocol):
    """A lease that this process has taken.

    Attributes:
        good_until: until when nobody else can have taken it, by `since_boot`.
        lost: whether another one is known to have it.
    """

    name: str
    good_until: float
    lost: bool

    def reserve(self, calls: int, tokens: int, usd: float) -> None:
        """Allows calls that may cost so much. Raises StoreError, also if another run has the lease."""

    def check(self) -> None:
        """Raises StoreError if another run has the lease."""

    def release(self) -> None:
        """Frees it, unless another one has it by now."""


class Leases(Protocol):
    """The leases of this process. Methods raise StoreError.

    Attributes:
        life_s: seconds until the lease of a holder that is silent is free.
    """

    life_s: float

    def take(self, name: str) -> Lease | None:
        """Takes a lease that nobody holds; returns None if somebody does."""

    def process(self) -> Lease:
        """Returns the lease by which others see that this process is alive; it is kept until the process ends."""

    def is_held(self, name: str) -> bool:
        """Whether somebody holds a lease."""

    def held(self, prefix: str) -> Mapping[str, float]:
        """Returns the leases that somebody holds and that begin so, with seconds since the last renewal."""

    def free_of_dead(self, name: str) -> None:
        """Frees a lease at once whose holder was a process of this machine and is gone."""

    def end_expired(self, name: str) -> bool:
        """Ends a lease if it has expired; returns whether nobody holds it now."""


def process_name(process: str) -> str:
    """Returns the name of the lease of a process, which is named by host, process id and start time."""
    return f"{PROCESSES}{process}"


def lock_name(parts: Sequence[str]) -> str:
    """Returns the name of the lease in the place of a lock file, by its folders and name."""
    return "/".join(("locks", *parts))

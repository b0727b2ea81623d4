"""Who is told what is being waited for while batches are carried through: that can take a day."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class BatchWatch(Protocol):
    """Told what is waited for; never twice at once of the same."""

    def waiting(self, what: str) -> None:
        """It is waited for, from now on."""

    def over(self, what: str) -> None:
        """It is not any more."""


class Unwatched:
    """Nobody looks on."""

    def waiting(self, what: str) -> None:
        """Tells nobody."""

    def over(self, what: str) -> None:
        """Tells nobody."""


@contextmanager
def shown(watch: BatchWatch, what: str) -> Iterator[None]:
    """Tells of what the block waits for."""
    watch.waiting(what)
    try:
        yield
    finally:
        watch.over(what)

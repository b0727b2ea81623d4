"""The observer that is told what a run is waiting for while batches are processed, which can take a day."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class BatchWatch(Protocol):
    """An observer of waiting; each `what` is reported at most once at a time."""

    def waiting(self, what: str) -> None:
        """Reports that waiting has begun."""

    def over(self, what: str) -> None:
        """Reports that waiting has ended."""


class Unwatched:
    """An observer that does nothing."""

    def waiting(self, what: str) -> None:
        """Does nothing."""

    def over(self, what: str) -> None:
        """Does nothing."""


@contextmanager
def shown(watch: BatchWatch, what: str) -> Iterator[None]:
    """Reports to the observer that the block is waiting."""
    watch.waiting(what)
    try:
        yield
    finally:
        watch.over(what)

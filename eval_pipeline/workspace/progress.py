"""Telling how far a stage has come, at next to no cost."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from eval_pipeline.workspace.workspace import Progress, Silent, T

SILENT: Progress = Silent()
BLOCK = 256
"""Items between two advances: telling of each would cost more than some of them do."""


def counted(progress: Progress, label: str, items: Iterable[T], total: int) -> Iterator[T]:
    """Passes the items on, with a bar that moves as they are taken.

    Args:
        progress: whom to tell.
        label: of the bar.
        items: what is worked through.
        total: how many there are; 0 where nobody knows.
    """
    progress.start(label, total)
    try:
        since = 0
        for item in items:
            yield item
            since += 1
            if since == BLOCK:
                progress.advance(label, since)
                since = 0
        if since:
            progress.advance(label, since)
    finally:
        progress.finish(label)


@contextmanager
def busy(progress: Progress, label: str) -> Iterator[None]:
    """A bar of unknown length for as long as the block takes."""
    progress.start(label, 0)
    try:
        yield
    finally:
        progress.finish(label)

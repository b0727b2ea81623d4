"""Reports the progress of a stage at little cost."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from eval_pipeline.workspace.workspace import Progress, Silent, T

SILENT: Progress = Silent()
BLOCK = 256
"""Items between two updates, because reporting each item would cost more than some of them take."""


def counted(progress: Progress, label: str, items: Iterable[T], total: int) -> Iterator[T]:
    """Yields the items and advances a progress bar.

    Args:
        progress: receives the progress.
        label: label of the bar.
        items: the items to process.
        total: number of items; 0 if unknown.
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
    """Shows a bar of unknown length while the block runs."""
    progress.start(label, 0)
    try:
        yield
    finally:
        progress.finish(label)

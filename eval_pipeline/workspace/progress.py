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


class Tally:
    """A bar for work elsewhere that tells how far it is; of unknown length until it does so."""

    def __init__(self, progress: Progress, label: str) -> None:
        self._progress, self._label, self._done, self._total = progress, label, 0, 0

    def __enter__(self) -> "Tally":
        self._progress.start(self._label, 0)
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.finish(self._label)

    def reached(self, done: int, total: int) -> None:
        """Shows that so much of a total is done."""
        if total != self._total:
            self._progress.finish(self._label)
            self._progress.start(self._label, total)
            self._done, self._total = 0, total
        self._progress.advance(self._label, done - self._done)
        self._done = done

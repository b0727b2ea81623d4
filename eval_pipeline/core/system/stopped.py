"""Counts what a limit of time or memory has stopped in this process: what came of it may be otherwise the next time."""

from itertools import count

_numbers = count(1)
_last = 0


def note_stopped() -> None:
    """Counts something that was stopped; any thread may call it."""
    global _last
    _last = next(_numbers)


def times_stopped() -> int:
    """Returns a number that grows with each call of `note_stopped`."""
    return _last

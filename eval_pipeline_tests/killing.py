"""Ends a command in the process of the test as if it were killed, at a call of one of its functions."""

import gc
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch


class Killed(BaseException):
    """No code catches it; what runs in `finally` does, which a kill would not let run."""


@contextmanager
def killed_at(
    place: str, count: int = 1, *, done: bool = False, end: Callable[[], None] | None = None
) -> Iterator[None]:
    """Ends the block at a call of the function, of which dry runs do not count: before it does anything, or after.

    Fails if the block ends by itself. `end` ends the process instead.
    """
    real, calls = pkgutil.resolve_name(place), 0

    def killed(*arguments: object, **more: object) -> object:
        nonlocal calls
        calls += not more.get("dry_run")
        if calls != count or more.get("dry_run"):
            return real(*arguments, **more)
        if done:
            real(*arguments, **more)
        if end:
            end()
        raise Killed

    with patch(place, killed):
        try:
            yield
        except Killed:
            pass
        else:
            raise AssertionError(f"{place} was not called {count} times")
    gc.collect()  # what the frames hold, locks among them, goes as it would with the process

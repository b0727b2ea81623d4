"""Sets the home for calls from a notebook or program, and restores the process's settings afterwards."""

import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, TypeVar

from eval_pipeline.core.home import Home, find_home
from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.core.system.interrupts import handlers_kept
from eval_pipeline.core.system.private import make_private
from eval_pipeline.workspace.homes.places import place_of

if TYPE_CHECKING:
    import pandas as pd

    from eval_pipeline.store.published.loading import Frames


FORGET = Later("eval_pipeline.defs.running.removing:forget")
"""Removes a model version from Dagster's storage; Dagster is loaded only where an interrupted removal is completed."""
_LOAD = Later("eval_pipeline.store.published.loading:load")
T = TypeVar("T")
Folder = str | Path
_SETTINGS = ("EVAL_HOME", "EVAL_DATA", "DAGSTER_HOME")
_one_at_a_time = RLock()


@contextmanager
def at_home(home: Folder | None = None, data: Folder | None = None) -> Iterator[Home]:
    """Uses a home within the context; afterwards settings, umask and signal handlers are restored.

    Settings belong to the whole process, so calls from several threads wait for each other.

    Args:
        home: the folder that runs write to; `EVAL_HOME` or the project's `.eval/` if left out.
        data: the folder with suites and model versions; `EVAL_DATA` or the project's `data/` if left out.
    """
    with _one_at_a_time, handlers_kept():
        before = {name: os.environ.get(name) for name in _SETTINGS}
        umask = os.umask(0o077)
        os.umask(umask)
        try:
            for name, folder in (("EVAL_HOME", home), ("EVAL_DATA", data)):
                if folder is not None:
                    # A home may be in a bucket, too.
                    there = str(folder) if "://" in str(folder) else str(Path(folder).expanduser().absolute())
                    os.environ[name] = there
            found = find_home()
            make_private(found.root)
            yield found
        finally:
            os.umask(umask)
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def outside_event_loops(work: Callable[[], T]) -> T:
    """Calls a function that starts an event loop; uses a new thread if a loop is already running, as in notebooks."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1, "eval-pipeline") as pool:
        return pool.submit(work).result()


def loaded(what: str | None, model_version: str | None, home: str | Path | None) -> "pd.DataFrame | Frames":
    """Implements `eval_pipeline.load`, with its arguments and errors."""
    if home is None:
        home = place_of(find_home()).fresh_store()
    elif "://" in str(home):
        with at_home(home) as found:
            home = place_of(found).fresh_store()
    frames: pd.DataFrame | Frames = _LOAD(what, model_version, home=home)
    return frames

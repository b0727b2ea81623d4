"""Cache of judgements: in memory during a run, on a shelf across runs until they expire."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from pydantic_core import from_json, to_json

from eval_pipeline.asking.journal.rows import SQLITE_FAILURES
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.judge.judgement import Judgement
from eval_pipeline.state.place import state_place
from eval_pipeline.state.shelf import Shelf

T = TypeVar("T")

LIFE_S = 24 * 3600.0
"""How long later runs use a judgement, in seconds."""
_log = logging.getLogger(__name__)


class JudgementCache:
    """Judgements on a shelf and in memory.

    If the shelf cannot be used, the evaluation goes on with the memory alone, and one warning is logged.
    """

    def __init__(self, path: Path | None, *, life_s: float = LIFE_S, clock: Callable[[], float] = time.time) -> None:
        """Opens the shelf, making it if needed, and deletes expired judgements.

        Args:
            path: the file, used without a database; None keeps judgements in memory only.
            life_s: lifetime of judgements on the shelf, in seconds.
            clock: returns the Unix time in seconds; for tests.
        """
        self._life_s = life_s
        self._clock = clock
        self._memory: dict[str, Judgement] = {}
        self._lock = threading.Lock()
        self._shelf: Shelf | None = None if path is None else state_place().shelf(path)
        self._use(lambda shelf: shelf.open(self._oldest()))

    async def find(self, key: str) -> Judgement | None:
        """Returns what `get` does, without holding up the event loop if the shelf is far."""
        if self._shelf is None or not self._shelf.far or key in self._memory:
            return self.get(key)
        return await asyncio.to_thread(self.get, key)

    async def keep(self, key: str, judgement: Judgement) -> None:
        """Stores a judgement as `put` does, without holding up the event loop if the shelf is far."""
        if self._shelf is None or not self._shelf.far:
            self.put(key, judgement)
        else:
            await asyncio.to_thread(self.put, key, judgement)

    def get(self, key: str) -> Judgement | None:
        """Returns the judgement under the key, marked as cached, or None."""
        found = self._memory.get(key)
        if found is None:
            body = self._use(lambda shelf: shelf.get(key, self._oldest()))
            found = _decode(key, body) if body else None
            if found is not None:
                self._memory[key] = found
        return found

    def put(self, key: str, judgement: Judgement) -> None:
        """Stores a judgement."""
        kept = Judgement(
            judgement.value,
            judgement.choice,
            judgement.reason,
            model=judgement.model,
            prompt_version=judgement.prompt_version,
            cached=True,
        )
        self._memory[key] = kept
        self._use(lambda shelf: shelf.put(key, _encode(key, kept), self._clock()))

    def close(self) -> None:
        """Closes the shelf; may be called repeatedly."""
        with self._lock:
            if self._shelf is not None:
                self._shelf.close()
            self._shelf = None

    def _oldest(self) -> float:
        return self._clock() - self._life_s

    def _use(self, work: Callable[[Shelf], T]) -> T | None:
        """Uses the shelf and returns the result; None without a shelf."""
        with self._lock:
            if self._shelf is None:
                return None
            try:
                return work(self._shelf)
            except (OSError, *SQLITE_FAILURES, StoreError) as error:
                _log.warning(
                    "the cache of judgements %s cannot be used (%s); equal questions of this run still share one call. "
                    "It holds nothing else and may be deleted",
                    self._shelf.place,
                    error,
                )
                self._shelf.close()
                self._shelf = None
                return None


def forget_expired(path: Path, *, dry_run: bool = False) -> int:
    """Deletes expired judgements and returns how many; 0 if there is no file, or it cannot be used."""
    with closing(state_place().shelf(path)) as shelf:
        return shelf.forget(time.time() - LIFE_S, dry_run=dry_run)


def purge_judgements(path: Path, stays: Callable[[Judgement], bool], *, dry_run: bool = False) -> int:
    """Deletes the judgements for which `stays` is False, rewrites the file without them, and returns how many.

    Raises:
        StoreError: the file cannot be used, or another process reads it.
    """

    def goes(key: str, body: str) -> bool:
        judgement = _decode(key, body)
        return judgement is None or not stays(judgement)

    with closing(state_place().shelf(path)) as shelf:
        return shelf.purge(goes, dry_run=dry_run)


def _encode(key: str, judgement: Judgement) -> str:
    said = (judgement.value, judgement.choice, judgement.reason, judgement.model, judgement.prompt_version)
    return to_json([*said, json_hash([key, *said])]).decode()


def _decode(key: str, body: str) -> Judgement | None:
    """Decodes what `_encode` wrote; returns None for damaged rows and those of version 0.1.0, which are asked again."""
    try:
        *said, digest = from_json(body)
        value, choice, reason, model, prompt_version = said
    except (ValueError, TypeError):
        return None
    if digest != json_hash([key, *said]):
        return None
    return Judgement(value, choice, reason, model=model, prompt_version=prompt_version, cached=True)

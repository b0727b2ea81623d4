"""Cache of judgements: in memory during a run, on disk across runs until they expire."""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from pydantic_core import from_json, to_json

from eval_pipeline.asking.journal.purging import erase
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.private import touch
from eval_pipeline.judge.judgement import Judgement

LIFE_S = 24 * 3600.0
"""How long later runs use a judgement, in seconds."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS judgements(
    key TEXT PRIMARY KEY NOT NULL,
    body TEXT NOT NULL,
    written_at REAL NOT NULL  -- seconds since 1970
)"""
_log = logging.getLogger(__name__)


class JudgementCache:
    """Judgements in a SQLite file and in memory.

    If the file cannot be used, the evaluation goes on with the memory alone, and one warning is logged.
    """

    def __init__(self, path: Path | None, *, life_s: float = LIFE_S, clock: Callable[[], float] = time.time) -> None:
        """Opens the file, creating it if needed, and deletes expired judgements.

        Args:
            path: the file; None keeps judgements in memory only.
            life_s: lifetime of judgements in the file, in seconds.
            clock: returns the Unix time in seconds; for tests.
        """
        self.path = path
        self._life_s = life_s
        self._clock = clock
        self._memory: dict[str, Judgement] = {}
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        if path is not None:
            self._open(path)

    def get(self, key: str) -> Judgement | None:
        """Returns the judgement under the key, marked as cached, or None."""
        found = self._memory.get(key)
        if found is None:
            row = self._execute("SELECT body FROM judgements WHERE key = ? AND written_at > ?", (key, self._oldest()))
            found = _decode(key, row[0]) if row else None
            if found is not None:
                self._memory[key] = found
        return found

    def put(self, key: str, judgement: Judgement) -> None:
        """Stores a judgement."""
        kept = _as_cached(judgement)
        self._memory[key] = kept
        self._execute("INSERT OR REPLACE INTO judgements VALUES (?, ?, ?)", (key, _encode(key, kept), self._clock()))

    def close(self) -> None:
        """Closes the file; may be called repeatedly."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _oldest(self) -> float:
        return self._clock() - self._life_s

    def _open(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            touch(path)
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)
            return
        self._execute("PRAGMA journal_mode=WAL")
        self._execute("PRAGMA synchronous=NORMAL")  # what a power failure loses is asked again
        self._execute(_SCHEMA)
        self._execute("DELETE FROM judgements WHERE written_at <= ?", (self._oldest(),))

    def _execute(self, statement: str, parameters: tuple[object, ...] = ()) -> tuple[str, ...] | None:
        """Runs a statement and returns its first row; None if there is no row or no file."""
        with self._lock:
            if self._connection is None:
                return None
            try:
                row: tuple[str, ...] | None = self._connection.execute(statement, parameters).fetchone()
                return row
            except sqlite3.Error as error:
                self._connection.close()
                self._give_up(error)
                return None

    def _give_up(self, error: Exception) -> None:
        self._connection = None
        _log.warning(
            "the cache of judgements %s cannot be used (%s); equal questions of this run still share one call. "
            "The file holds nothing else and may be deleted",
            self.path,
            error,
        )


def forget_expired(path: Path, *, dry_run: bool = False) -> int:
    """Deletes expired judgements from a file and returns how many; 0 for a file that cannot be used."""
    if not path.is_file():
        return 0
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=5.0)) as connection:
            oldest = (time.time() - LIFE_S,)
            if dry_run:
                statement = "SELECT count(*) FROM judgements WHERE written_at <= ?"
                return int(connection.execute(statement, oldest).fetchone()[0])
            return connection.execute("DELETE FROM judgements WHERE written_at <= ?", oldest).rowcount
    except sqlite3.Error:
        return 0


def purge_judgements(path: Path, stays: Callable[[Judgement], bool], *, dry_run: bool = False) -> int:
    """Deletes the judgements for which `stays` is False, rewrites the file without them, and returns how many.

    Raises:
        StoreError: the file cannot be used, or another process reads it.
    """
    if not path.is_file():
        return 0
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=5.0)) as connection:
            rows = connection.execute("SELECT key, body FROM judgements").fetchall()
            found = ((key, _decode(key, body)) for key, body in rows)
            gone = [key for key, judgement in found if judgement is None or not stays(judgement)]
            if not dry_run:
                erase(connection, [("judgements", "key", gone)])
            return len(gone)
    except sqlite3.Error as error:
        raise StoreError(
            f"cannot purge the judgements {path} ({error}); end the programs that use them, "
            "then run the same command again"
        ) from error


def _as_cached(judgement: Judgement) -> Judgement:
    return Judgement(
        judgement.value,
        judgement.choice,
        judgement.reason,
        model=judgement.model,
        prompt_version=judgement.prompt_version,
        cached=True,
    )


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

"""Removes responses that nothing refers to from the journal."""

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from eval_pipeline.asking.journal.codec import decode_response
from eval_pipeline.asking.journal.rows import SQLITE_FAILURES
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.model import Response

_CHUNK = 500
_PATIENCE_S = 10.0
_VACUUM_FROM = 0.25
"""The file is rewritten if at least this share of its pages is free."""


def prune_journal(path: Path, unused: Callable[[Response], bool], before: float, *, dry_run: bool) -> int:
    """Removes unused responses written before a given time; returns how many.

    Unreadable bodies are kept; `doctor` reports them.

    Args:
        path: the journal; if it does not exist, nothing is done.
        unused: returns whether nothing refers to a response.
        before: Unix time in seconds; newer responses may belong to a run that has not written its record yet.
        dry_run: only count.

    Raises:
        StoreError: the file cannot be read or written.
    """
    if not path.is_file():
        return 0
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=_PATIENCE_S)) as connection:
            rows = connection.execute("SELECT key, body FROM responses WHERE written_at < ?", (before,))
            keys = [key for key, body in rows if is_unused(unused, body)]
            if not dry_run:
                _delete(connection, keys)
            return len(keys)
    except SQLITE_FAILURES as error:
        raise StoreError(f"cannot prune the journal {path} ({error}); run `eval-pipeline doctor`") from error


def is_unused(unused: Callable[[Response], bool], body: bytes) -> bool:
    """Whether nothing refers to an encoded response; False if it is unreadable."""
    try:
        return unused(decode_response(body))
    except ValueError:
        return False


def _delete(connection: sqlite3.Connection, keys: list[str]) -> None:
    for start in range(0, len(keys), _CHUNK):  # short transactions, so that a run can write in between
        chunk = [(key,) for key in keys[start : start + _CHUNK]]
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("DELETE FROM responses WHERE key = ?", chunk)
        connection.execute("COMMIT")
    (free,), (pages,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("freelist_count", "page_count"))
    if keys and free > _VACUUM_FROM * pages:
        with suppress(sqlite3.OperationalError):  # the file is in use; a later call shrinks it
            connection.execute("VACUUM")

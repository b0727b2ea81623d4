"""Removes responses and batches from the journal for good, including the bytes that SQLite would leave in the file."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from eval_pipeline.asking.journal.codec import FirstAsker, asker_in, decode_response
from eval_pipeline.asking.journal.rows import SQLITE_FAILURES
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.model import Response

_CHUNK = 500
_PATIENCE_S = 10.0

Goes = Callable[[Response, FirstAsker | None], bool]
"""Decides whether a response is removed, by its content and by who asked for it (None if an older version wrote it)."""


class PurgedJournal(NamedTuple):
    """Numbers of rows that were removed, or would be in a dry run.

    Attributes:
        responses: rows of responses.
        of_nobody: those of them written by an older version, which did not record who asked.
        batches: batches submitted for them.
    """

    responses: int = 0
    of_nobody: int = 0
    batches: int = 0


def purge_journal(path: Path, goes: Goes, model_version: str, *, every_suite: bool, dry_run: bool) -> PurgedJournal:
    """Removes responses and rewrites the file, so that nothing of them remains in free pages or the log.

    Unreadable bodies are kept; `doctor` reports them.

    Args:
        path: the journal; if it does not exist, nothing is done.
        goes: returns whether a response is removed.
        model_version: its batches are removed too.
        every_suite: remove all batches of the model version, not only those that asked for a removed response.
        dry_run: only count.

    Raises:
        StoreError: the file cannot be read or written, or another process has it open.
    """
    if not path.is_file():
        return PurgedJournal()
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=_PATIENCE_S)) as connection:
            keys, of_nobody = who_goes(connection.execute("SELECT key, body FROM responses"), goes)
            batches = _batches(connection, model_version, None if every_suite else frozenset(keys))
            if not dry_run:
                erase(connection, (("responses", "key", keys), ("batches", "intent_id", batches)))
            return PurgedJournal(len(keys), of_nobody, len(batches))
    except SQLITE_FAILURES as error:
        raise StoreError(
            f"cannot purge the journal {path} ({error}); end the programs that use it, then run the same command again"
        ) from error


def erase(connection: sqlite3.Connection, gone: Sequence[tuple[str, str, Sequence[str]]]) -> None:
    """Deletes rows and makes SQLite rewrite the file without them.

    If it is killed, calling it again completes the work: the file is rewritten even if there are no rows left to
    delete.

    Args:
        connection: without an open transaction.
        gone: table, its key column and the keys to delete.

    Raises:
        sqlite3.Error: the file cannot be written, or another process reads it.
    """
    connection.execute("PRAGMA secure_delete=ON")
    for table, column, keys in gone:
        for start in range(0, len(keys), _CHUNK):
            chunk = [(key,) for key in keys[start : start + _CHUNK]]
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", chunk)
            connection.execute("COMMIT")
    connection.execute("VACUUM")
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise sqlite3.OperationalError("somebody reads it, so that its log keeps what was deleted")


def who_goes(rows: Iterable[tuple[str, bytes]], goes: Goes) -> tuple[list[str], int]:
    """Returns the keys of the responses that are removed, and how many of them an older version wrote.

    Unreadable bodies stay; `doctor` reports them.
    """
    keys, of_nobody = [], 0
    for key, body in rows:
        asker = asker_in(body)
        try:
            found = goes(decode_response(body), asker)
        except ValueError:
            continue
        if found:
            keys.append(key)
            of_nobody += asker is None
    return keys, of_nobody


def _batches(connection: sqlite3.Connection, model_version: str, asked: frozenset[str] | None) -> list[str]:
    """Returns the ids of the model version's batches: all, or those that contain one of the keys."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'batches'").fetchone():
        return []
    rows = connection.execute("SELECT intent_id, custom_ids FROM batches WHERE model_version = ?", (model_version,))
    return batches_of(rows, asked)


def batches_of(rows: Iterable[tuple[str, str]], asked: frozenset[str] | None) -> list[str]:
    """Returns the ids of the batches that contain one of the keys, or of all.

    Args:
        rows: id of a batch and its keys as JSON.
        asked: the keys; None for all batches.
    """
    return [found for found, keys in rows if asked is None or not asked.isdisjoint(parse_json(keys))]

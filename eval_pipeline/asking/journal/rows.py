"""SQL of the journal's table of responses."""

import sqlite3
from collections.abc import Sequence
from hashlib import blake2b
from itertools import chain

from eval_pipeline.core.ids import canonical_json

# An ordinary table with a separate index: with WITHOUT ROWID, SQLite would store the long bodies in inner nodes.
SCHEMA = """
CREATE TABLE IF NOT EXISTS responses(
    key TEXT PRIMARY KEY NOT NULL,
    body BLOB NOT NULL,
    written_at INTEGER NOT NULL,  -- seconds since 1970
    digest BLOB  -- of key and body; NULL where 0.1.0 wrote the row
)"""
ADD_DIGEST = "ALTER TABLE responses ADD COLUMN digest BLOB"
_INSERT = {  # number of rows → statement, largest first
    rows: "INSERT INTO responses(key, body, written_at, digest) VALUES " + ", ".join(["(?, ?, ?, ?)"] * rows)
    for rows in (256, 64, 16, 4, 1)
}
_INSERT_IF_NEW = _INSERT[1] + " ON CONFLICT DO NOTHING"
_AMONG = "FROM responses WHERE key IN (SELECT value FROM json_each(?))"

SQLITE_FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What a file can raise: sqlite3 cannot decode its own message where this quotes a damaged name."""

Row = tuple[str, bytes]
"""A key and the body recorded under it."""


class DamagedRowError(Exception):
    """A row differs from what was written."""


def digest_of(key: str, body: bytes) -> bytes:
    """Returns the checksum of a row. It covers the key too, because a damaged index can lead to rows of other keys."""
    digest = blake2b(key.encode("utf-8", "surrogatepass") + b"\0", digest_size=16)
    digest.update(body)
    return digest.digest()


def is_whole(key: object, body: object, digest: object) -> bool:
    """Whether a row is undamaged; also True for rows without a checksum, where this is unknown."""
    if not isinstance(key, str) or not isinstance(body, bytes):
        return False
    return digest is None or digest == digest_of(key, body)


def recorded(connection: sqlite3.Connection, keys: Sequence[str]) -> dict[str, bytes]:
    """Returns the bodies recorded under any of the keys.

    Raises:
        DamagedRowError: one of the rows is damaged.
    """
    rows = connection.execute(f"SELECT key, body, digest {_AMONG}", (canonical_json(keys),)).fetchall()
    for row in rows:
        if not is_whole(*row):
            raise DamagedRowError(f"the response under {row[0]} is not as it was written")
    return {key: body for key, body, _ in rows}


def known(connection: sqlite3.Connection, keys: Sequence[str]) -> set[str]:
    """Returns those of the keys that are recorded."""
    return {row[0] for row in connection.execute(f"SELECT key {_AMONG}", (canonical_json(keys),))}


def insert(connection: sqlite3.Connection, rows: Sequence[Row], now: int) -> list[bool]:
    """Inserts the rows whose keys are new, within a transaction; returns for each row whether its key was new.

    Uses few statements: each one releases the GIL and has to get it back from the event loop, which with one statement
    per row cost more than the writing itself.

    Args:
        connection: in a transaction.
        rows: keys with bodies; of rows with equal keys, the first counts.
        now: Unix time in seconds.
    """
    # Of rows with equal keys, the first stays.
    first = {key: (key, body, now, digest_of(key, body)) for key, body in reversed(rows)}
    values = list(first.values())
    new = set(first)
    start = 0
    while start < len(values):
        size = next(size for size in _INSERT if size <= len(values) - start)
        chunk = values[start : start + size]
        try:
            connection.execute(_INSERT[size], tuple(chain.from_iterable(chunk)))
        except sqlite3.IntegrityError:  # rare: another process recorded some keys, so the statement had no effect
            new.difference_update(row[0] for row in chunk if not connection.execute(_INSERT_IF_NEW, row).rowcount)
        start += size
    return fresh_of(rows, new)


def fresh_of(rows: Sequence[Row], new: set[str]) -> list[bool]:
    """Returns for each row whether it is the first of a new key.

    Args:
        rows: the rows that were written together.
        new: the keys that were not recorded before; emptied.
    """
    fresh = []
    for key, _ in rows:
        fresh.append(key in new)
        new.discard(key)
    return fresh

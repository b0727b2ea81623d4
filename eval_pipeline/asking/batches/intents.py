"""The journal's table of batches.

Every batch is written down before it is submitted, so that none is paid for twice.
"""

import socket
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import DamagedFileError, StoreError
from eval_pipeline.core.ids import json_hash, json_text, parse_json
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.processes import is_alive, mark

_BUSY_TIMEOUT_S = 30.0
_ELSEWHERE = timedelta(hours=1)
"""After this time, a process on another machine is assumed not to submit its batch any more."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS batches(
    intent_id TEXT PRIMARY KEY NOT NULL,
    provider TEXT NOT NULL,
    endpoint TEXT NOT NULL,     -- base_url of the model version, empty for the provider's own
    model TEXT NOT NULL,
    model_version TEXT NOT NULL,
    created_at TEXT NOT NULL,   -- ISO, UTC
    custom_ids TEXT NOT NULL,   -- JSON: the journal keys of its requests
    batch_id TEXT,              -- the provider's; NULL: not handed in, or not known to be
    owner TEXT NOT NULL,        -- process that hands it in: host, process id and its start
    state TEXT NOT NULL,        -- open, collected, refused or lost
    digest TEXT                 -- of all others; NULL where 0.1.0 wrote the row
)"""
COLUMNS = (
    "intent_id", "provider", "endpoint", "model", "model_version",
    "created_at", "custom_ids", "batch_id", "owner", "state",
)  # fmt: skip
_ALL = f"SELECT {', '.join(COLUMNS)}, digest FROM batches"


class State(StrEnum):
    """State of a batch: `open` until its results are in the journal or it is certain that there will be none."""

    OPEN = "open"
    COLLECTED = "collected"
    REFUSED = "refused"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Intent:
    """A batch that was recorded in the journal before being submitted.

    Attributes:
        keys: journal keys of its requests, which are also their custom ids.
        batch_id: the provider's id; None if the batch was not submitted, or the process ended before it knew.
        owner: the process that submits it.
    """

    id: str
    created_at: datetime
    keys: frozenset[str]
    batch_id: str | None
    owner: str

    def __str__(self) -> str:
        """Returns the text shown to users who wait for the batch."""
        return f"{self.id[:8]} ({len(self.keys):,} requests)"


class BatchIntents:
    """The table `batches` in the journal's file, limited to the batches of one model version.

    Several processes may use it at once; a request is never claimed by two of them.
    """

    def __init__(self, journal: Path, version: ModelVersion) -> None:
        """Creates the table if needed. Raises StoreError."""
        self._path = journal
        self._account = (version.provider, str(version.options.get("base_url", "")), version.model)
        self._version = version.name
        with self._writing() as connection:
            make_table(connection)

    @property
    def model_version(self) -> str:
        """Name of the model version that asks."""
        return self._version

    def open(self) -> list[Intent]:
        """Returns the batches whose results are not all in the journal yet, oldest first. Raises StoreError."""
        with self._connection() as connection:
            return self._open(connection)

    def claim(self, keys: Iterable[str]) -> Intent | None:
        """Writes down a batch of those keys that are in no open batch; returns None if there are none.

        Raises:
            StoreError: the batch could not be written.
        """
        with self._writing() as connection:
            taken = frozenset[str]().union(*(intent.keys for intent in self._open(connection)))
            left = [key for key in keys if key not in taken]
            if not left:
                return None
            intent = Intent(uuid.uuid4().hex, datetime.now(UTC), frozenset(left), None, _this_process())
            row = (intent.id, *self._account, self._version, intent.created_at.isoformat(), json_text(left))
            insert_batch(connection, (*row, None, intent.owner, State.OPEN.value))
            return intent

    def take_over(self, intent: Intent) -> bool:
        """Makes this process the owner of a batch if its previous owner is gone; returns whether it is.

        Raises StoreError.
        """
        if intent.owner == _this_process():
            return True
        if _lives(intent.owner, intent.created_at):
            return False
        with self._writing() as connection:
            # If several processes find the batch orphaned at the same moment, only one of them gets it.
            row = self._row(connection, intent.id)
            if row["owner"] != intent.owner or row["batch_id"] is not None:
                return False
            insert_batch(connection, tuple((row | {"owner": _this_process()}).values()))
            return True

    def handed_in(self, intent_id: str, batch_id: str) -> None:
        """Records the provider's id of a submitted batch. Raises StoreError."""
        with self._writing() as connection:
            insert_batch(connection, tuple((self._row(connection, intent_id) | {"batch_id": batch_id}).values()))

    def close(self, intent_id: str, state: State) -> None:
        """Records that no more results will be read from the batch. Raises StoreError."""
        with self._writing() as connection:
            insert_batch(connection, tuple((self._row(connection, intent_id) | {"state": state.value}).values()))

    def batch_ids(self) -> frozenset[str]:
        """Returns the provider's ids of all batches submitted with this journal, including closed ones.

        Raises StoreError.
        """
        with self._connection() as connection:
            return frozenset(row["batch_id"] for row in self._rows(connection) if row["batch_id"] is not None)

    def _open(self, connection: sqlite3.Connection) -> list[Intent]:
        mine = [
            Intent(
                row["intent_id"],
                datetime.fromisoformat(row["created_at"]),
                frozenset(parse_json(row["custom_ids"])),
                row["batch_id"],
                row["owner"],
            )
            for row in self._rows(connection)
            if row["state"] == State.OPEN.value and (row["provider"], row["endpoint"], row["model"]) == self._account
        ]
        return sorted(mine, key=lambda intent: intent.created_at)

    def _rows(self, connection: sqlite3.Connection) -> list[dict[str, Any]]:
        """Returns all batches, including closed and foreign ones, since a damaged row could be any of them."""
        rows = connection.execute(_ALL).fetchall()
        if not all(map(is_whole_batch, rows)):
            raise DamagedFileError(
                f"a batch in the journal {self._path} is not as it was written; end all runs, then `eval-pipeline "
                "doctor --repair`"
            )
        return [dict(zip(COLUMNS, row[:-1], strict=True)) for row in rows]

    def _row(self, connection: sqlite3.Connection, intent_id: str) -> dict[str, Any]:
        return next(row for row in self._rows(connection) if row["intent_id"] == intent_id)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Opens an exclusive write transaction; it is on disk when the block ends."""
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        # One connection per use: batches are few, and a connection kept open for hours would stop the WAL from being
        # truncated.
        try:
            with closing(sqlite3.connect(self._path, isolation_level=None, timeout=_BUSY_TIMEOUT_S)) as connection:
                connection.execute("PRAGMA synchronous=FULL")
                yield connection
        except sqlite3.Error as error:
            raise StoreError(
                f"cannot use the table of batches in the journal {self._path} ({error}); nothing recorded is lost: run "
                "`eval-pipeline doctor`, then start the run again"
            ) from error


def make_table(connection: sqlite3.Connection) -> None:
    """Creates the table if it is missing, and adds the digest column to one made by an older version."""
    connection.execute(_SCHEMA)
    if "digest" not in {row[1] for row in connection.execute("PRAGMA table_info(batches)")}:
        connection.execute("ALTER TABLE batches ADD COLUMN digest TEXT")


def insert_batch(connection: sqlite3.Connection, row: Sequence[Any]) -> None:
    """Inserts or replaces a row of `COLUMNS`, with its digest."""
    marks = ", ".join("?" * (len(COLUMNS) + 1))
    connection.execute(f"INSERT OR REPLACE INTO batches VALUES ({marks})", (*row, json_hash(list(row))))


def is_whole_batch(row: Sequence[Any]) -> bool:
    """Whether a row of `COLUMNS` and digest is undamaged; True for rows of version 0.1.0, which have no digest."""
    return row[-1] is None or row[-1] == json_hash(list(row[:-1]))


def batch_rows(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Returns all rows of the table, damaged or not; an empty list if there is no table."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'batches'").fetchone():
        return []
    columns = {row[1] for row in connection.execute("PRAGMA table_info(batches)")}
    return connection.execute(_ALL if "digest" in columns else _ALL.replace("digest", "NULL")).fetchall()


def _this_process() -> str:
    return f"{socket.gethostname()} {mark()}"


def _lives(owner: str, since: datetime) -> bool:
    """Whether the owner may still submit its batch."""
    host, pid, started = owner.rsplit(" ", 2)
    if host != socket.gethostname():
        return datetime.now(UTC) - since < _ELSEWHERE
    return is_alive(int(pid), started)

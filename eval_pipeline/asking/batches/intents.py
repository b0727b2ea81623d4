"""What the journal keeps of batches: each is written down before it is handed in, so that none is paid for twice."""

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
"""A process of another machine that has not handed a batch in after that long will not do so any more."""

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
    """How a batch stands: `open` until its results are in the journal, or none can come."""

    OPEN = "open"
    COLLECTED = "collected"
    REFUSED = "refused"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Intent:
    """A batch that was to be handed in.

    Attributes:
        keys: journal keys of its requests, which are their custom ids.
        batch_id: the provider's; None where it was not handed in, or the process ended before it knew.
        owner: the process that hands it in.
    """

    id: str
    created_at: datetime
    keys: frozenset[str]
    batch_id: str | None
    owner: str

    def __str__(self) -> str:
        """As people are told of it who wait."""
        return f"{self.id[:8]} ({len(self.keys):,} requests)"


class BatchIntents:
    """The table `batches` of the journal's file, as one model version sees it.

    Several processes may use it at once; two never hold a claim to the same request.
    """

    def __init__(self, journal: Path, version: ModelVersion) -> None:
        """Makes the table if need be. Raises StoreError."""
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
        """Batches whose results are not all in the journal yet, the oldest first. Raises StoreError."""
        with self._connection() as connection:
            return self._open(connection)

    def claim(self, keys: Iterable[str]) -> Intent | None:
        """Writes down a batch of those keys that no open batch has; None where each of them is in one.

        Raises:
            StoreError: it could not be written.
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
        """Makes this process the one that hands the batch in, where the one before is gone. Raises StoreError."""
        if intent.owner == _this_process():
            return True
        if _lives(intent.owner, intent.created_at):
            return False
        with self._writing() as connection:
            # Of several that find it orphaned in the same moment one gets it.
            row = self._row(connection, intent.id)
            if row["owner"] != intent.owner or row["batch_id"] is not None:
                return False
            insert_batch(connection, tuple((row | {"owner": _this_process()}).values()))
            return True

    def handed_in(self, intent_id: str, batch_id: str) -> None:
        """Writes down under which id the provider has the batch. Raises StoreError."""
        with self._writing() as connection:
            insert_batch(connection, tuple((self._row(connection, intent_id) | {"batch_id": batch_id}).values()))

    def close(self, intent_id: str, state: State) -> None:
        """Writes down that nothing is to be had from the batch any more. Raises StoreError."""
        with self._writing() as connection:
            insert_batch(connection, tuple((self._row(connection, intent_id) | {"state": state.value}).values()))

    def batch_ids(self) -> frozenset[str]:
        """The provider's ids of all batches handed in from here, closed ones too. Raises StoreError."""
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
        """All batches, closed ones and those of others too: a damaged one could be any of them."""
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
        """A transaction that no other process writes beside; on disk when the block ends."""
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        # One a use: batches are few, and a connection that is open for hours would keep the WAL from being shortened.
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
    """Makes the table where it is not there, with digests where it is an older one."""
    connection.execute(_SCHEMA)
    if "digest" not in {row[1] for row in connection.execute("PRAGMA table_info(batches)")}:
        connection.execute("ALTER TABLE batches ADD COLUMN digest TEXT")


def insert_batch(connection: sqlite3.Connection, row: Sequence[Any]) -> None:
    """Puts a row of `COLUMNS` in, with its digest, or in the place of the one that was there."""
    marks = ", ".join("?" * (len(COLUMNS) + 1))
    connection.execute(f"INSERT OR REPLACE INTO batches VALUES ({marks})", (*row, json_hash(list(row))))


def is_whole_batch(row: Sequence[Any]) -> bool:
    """Whether a row of `COLUMNS` and digest is as it was written; of version 0.1.0's that is not known."""
    return row[-1] is None or row[-1] == json_hash(list(row[:-1]))


def batch_rows(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """The rows of the table, whole or not; none where there is no table."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'batches'").fetchone():
        return []
    columns = {row[1] for row in connection.execute("PRAGMA table_info(batches)")}
    return connection.execute(_ALL if "digest" in columns else _ALL.replace("digest", "NULL")).fetchall()


def _this_process() -> str:
    return f"{socket.gethostname()} {mark()}"


def _lives(owner: str, since: datetime) -> bool:
    """Whether the process may still hand its batch in."""
    host, pid, started = owner.rsplit(" ", 2)
    if host != socket.gethostname():
        return datetime.now(UTC) - since < _ELSEWHERE
    return is_alive(int(pid), started)

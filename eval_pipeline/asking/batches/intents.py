"""What the journal keeps of batches: each is written down before it is handed in, so that none is paid for twice."""

import os
import socket
import sqlite3
import uuid
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

import psutil

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.ids import json_text, parse_json
from eval_pipeline.core.model_versions import ModelVersion

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
    state TEXT NOT NULL         -- open, collected, refused or lost
)"""
_OPEN = "SELECT intent_id, created_at, custom_ids, batch_id, owner FROM batches WHERE state = 'open'"
_ACCOUNT = "provider = ? AND endpoint = ? AND model = ?"


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
            connection.execute(_SCHEMA)

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
            connection.execute(
                "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, NULL, ?, 'open')", (*row, intent.owner)
            )
            return intent

    def take_over(self, intent: Intent) -> bool:
        """Makes this process the one that hands the batch in, where the one before is gone. Raises StoreError."""
        if intent.owner == _this_process():
            return True
        if _lives(intent.owner, intent.created_at):
            return False
        with self._writing() as connection:
            # Of several that find it orphaned in the same moment one gets it.
            change = "UPDATE batches SET owner = ? WHERE intent_id = ? AND owner = ? AND batch_id IS NULL"
            return connection.execute(change, (_this_process(), intent.id, intent.owner)).rowcount == 1

    def handed_in(self, intent_id: str, batch_id: str) -> None:
        """Writes down under which id the provider has the batch. Raises StoreError."""
        with self._writing() as connection:
            connection.execute("UPDATE batches SET batch_id = ? WHERE intent_id = ?", (batch_id, intent_id))

    def close(self, intent_id: str, state: State) -> None:
        """Writes down that nothing is to be had from the batch any more. Raises StoreError."""
        with self._writing() as connection:
            connection.execute("UPDATE batches SET state = ? WHERE intent_id = ?", (state.value, intent_id))

    def batch_ids(self) -> frozenset[str]:
        """The provider's ids of all batches handed in from here, closed ones too. Raises StoreError."""
        with self._connection() as connection:
            rows = connection.execute("SELECT batch_id FROM batches WHERE batch_id IS NOT NULL")
            return frozenset(row[0] for row in rows)

    def _open(self, connection: sqlite3.Connection) -> list[Intent]:
        rows = connection.execute(f"{_OPEN} AND {_ACCOUNT} ORDER BY created_at", self._account)
        return [
            Intent(intent_id, datetime.fromisoformat(created), frozenset(parse_json(ids)), batch_id, owner)
            for intent_id, created, ids, batch_id, owner in rows
        ]

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


def _this_process() -> str:
    return f"{socket.gethostname()} {os.getpid()} {psutil.Process().create_time():.2f}"


def _lives(owner: str, since: datetime) -> bool:
    """Whether the process may still hand its batch in."""
    host, pid, started = owner.rsplit(" ", 2)
    if host != socket.gethostname():
        return datetime.now(UTC) - since < _ELSEWHERE
    try:
        process = psutil.Process(int(pid))
        # One that was killed stays in the list of processes until its parent has looked at it, perhaps for ever.
        ended = process.status() in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
        return not ended and abs(process.create_time() - float(started)) < 1
    except psutil.NoSuchProcess:
        return False

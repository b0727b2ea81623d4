"""The table of batches in the journal's file."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from eval_pipeline.asking.batches.table import COLUMNS, BatchRow, BatchRows, batch_digest
from eval_pipeline.asking.journal.rows import SQLITE_FAILURES
from eval_pipeline.core.errors import StoreError

T = TypeVar("T")

_BUSY_TIMEOUT_S = 30.0
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
_ALL = f"SELECT {', '.join(COLUMNS)}, digest FROM batches"


@dataclass(frozen=True, slots=True)
class _Rows:
    connection: sqlite3.Connection

    def all(self) -> list[BatchRow]:
        return batch_rows(self.connection)

    def put(self, row: Sequence[Any]) -> None:
        insert_batch(self.connection, row)


@dataclass(frozen=True, slots=True)
class SqliteBatchTable:
    """The table `batches` of a SQLite file; it is made when it is first used."""

    path: Path

    @property
    def place(self) -> str:
        """The path of the file."""
        return str(self.path)

    def read(self, work: Callable[[BatchRows], T]) -> T:
        """Returns what the work finds in the rows. Raises StoreError."""
        with self._connection() as connection:
            return work(_Rows(connection))

    def write(self, work: Callable[[BatchRows], T], *, paying: bool = False) -> T:
        """Does work in an exclusive transaction, which is on disk when this returns. Raises StoreError."""
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            make_table(connection)
            done = work(_Rows(connection))
            connection.execute("COMMIT")
            return done

    def lives(self, owner: str) -> bool | None:
        """Returns None: a file does not tell who is alive elsewhere."""
        return None

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        # One connection per use: batches are few, and a connection kept open for hours would stop the WAL from being
        # truncated.
        try:
            with closing(sqlite3.connect(self.path, isolation_level=None, timeout=_BUSY_TIMEOUT_S)) as connection:
                connection.execute("PRAGMA synchronous=FULL")
                yield connection
        except SQLITE_FAILURES as error:
            raise StoreError(
                f"cannot use the table of batches in the journal {self.path} ({error}); nothing recorded is lost: run "
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
    connection.execute(f"INSERT OR REPLACE INTO batches VALUES ({marks})", (*row, batch_digest(row)))


def batch_rows(connection: sqlite3.Connection) -> list[BatchRow]:
    """Returns all rows of the table, damaged or not; an empty list if there is no table."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'batches'").fetchone():
        return []
    columns = {row[1] for row in connection.execute("PRAGMA table_info(batches)")}
    return list(connection.execute(_ALL if "digest" in columns else _ALL.replace("digest", "NULL")))

"""The ledger: what everybody who spends under an account holds, so that together they never exceed its limit.

Everybody who spends has one row with what they have spent and reserved, and nobody else writes it. So the row of a
process that died counts with all that it had reserved, since its calls may have been charged.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from eval_pipeline.asking.journal.rows import SQLITE_FAILURES
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.system.private import touch
from eval_pipeline.core.system.processes import host, is_alive

KEPT_S = 90 * 24 * 3600.0
"""How long rows are kept, in seconds."""
_PATIENCE_S = 30.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS spending(
    account TEXT NOT NULL,
    holder TEXT NOT NULL,       -- process and one of those that spend in it
    purpose TEXT NOT NULL,      -- what it spends on
    usd REAL NOT NULL,          -- spent and reserved
    in_flight INTEGER NOT NULL, -- calls with a reservation
    refused INTEGER NOT NULL,   -- calls that the limit did not allow
    written_at REAL NOT NULL,   -- seconds since 1970
    PRIMARY KEY (account, holder)
)"""
COLUMNS = "holder, purpose, usd, in_flight, refused"
_PUT = f"""
INSERT INTO spending(account, {COLUMNS}, written_at) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (account, holder) DO UPDATE SET
    usd = excluded.usd, in_flight = excluded.in_flight, refused = excluded.refused, written_at = excluded.written_at"""


@dataclass(frozen=True, slots=True)
class Hold:
    """What somebody holds of an account.

    Attributes:
        holder: the process (`worldwide_mark`) and which of those that spend in it.
        purpose: what it spends on.
        usd: spent and reserved, in US dollars.
        in_flight: number of calls with a reservation.
        refused: number of calls that the limit did not allow.
    """

    holder: str
    purpose: str = ""
    usd: float = 0.0
    in_flight: int = 0
    refused: int = 0


class Claim(Enum):
    """The answer to a claim: granted, later perhaps (others that are alive have calls in flight), or never."""

    GRANTED = "granted"
    LATER = "later"
    REFUSED = "refused"


class Ledger(Protocol):
    """What is spent, by account. Methods may be called from any thread, and raise StoreError."""

    def claim(self, account: str, limit: float, now: Hold, then: Hold) -> Claim:
        """Writes `then` as what a holder has if all rows of the account stay within the limit, otherwise `now`."""

    def put(self, account: str, now: Hold) -> None:
        """Writes what a holder has."""

    def rows(self, account: str) -> list[Hold]:
        """Returns what everybody holds of an account."""

    def close(self) -> None:
        """Closes it."""


def answer_to(rows: Sequence[Hold], limit: float, now: Hold, then: Hold, lives: Callable[[str], bool]) -> Claim:
    """Returns whether a holder may have `then` instead of `now`.

    Args:
        rows: what everybody has of the account.
        limit: US dollars for all of them.
        now: what the holder has.
        then: what it wants to have.
        lives: whether the process of a holder is alive; asked only if the limit does not allow it.
    """
    others = [row for row in rows if row.holder != now.holder]
    if sum(row.usd for row in others) + then.usd <= limit:
        return Claim.GRANTED
    waits = now.in_flight or any(row.in_flight and lives(process_of(row.holder)) for row in others)
    return Claim.LATER if waits else Claim.REFUSED


def process_of(holder: str) -> str:
    """Returns the mark of a holder's process."""
    return holder.rpartition(" ")[0]


_making = threading.Lock()


class SqliteLedger:
    """A ledger in a SQLite file, for the processes of one host."""

    def __init__(self, path: Path) -> None:
        """Opens the file, creating it if needed, and deletes old rows. Raises StoreError."""
        self._path, self._turn = path, threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with _making:  # closing a file frees the locks that connections of other threads have on it
                if not path.exists():
                    touch(path)
        except OSError as error:
            raise StoreError(f"cannot make {path}: {error.strerror}") from error
        # Autocommit; the default `synchronous=FULL` keeps what is reserved through a power failure.
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=_PATIENCE_S)
        with self._transaction() as connection:
            connection.execute(_SCHEMA)
            connection.execute("DELETE FROM spending WHERE written_at <= ?", (time.time() - KEPT_S,))

    def claim(self, account: str, limit: float, now: Hold, then: Hold) -> Claim:
        """See `Ledger`."""
        with self._transaction() as connection:
            answer = answer_to(_rows(connection, account), limit, now, then, _lives)
            _put(connection, account, then if answer is Claim.GRANTED else now)
        return answer

    def put(self, account: str, now: Hold) -> None:
        """See `Ledger`."""
        with self._transaction() as connection:
            _put(connection, account, now)

    def rows(self, account: str) -> list[Hold]:
        """See `Ledger`."""
        with self._transaction() as connection:
            return _rows(connection, account)

    def close(self) -> None:
        """Closes the file."""
        with self._turn:
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Yields the connection in a transaction that no other process has at the same time."""
        with self._turn:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    yield self._connection
                except BaseException:
                    self._connection.execute("ROLLBACK")
                    raise
                self._connection.execute("COMMIT")
            except SQLITE_FAILURES as error:
                told = "it says what limits on costs still allow: remove it if it is damaged, and start the run again"
                raise StoreError(f"{self._path} cannot be used ({error}); {told}") from error


def _rows(connection: sqlite3.Connection, account: str) -> list[Hold]:
    found = connection.execute(f"SELECT {COLUMNS} FROM spending WHERE account = ?", (account,))
    return [Hold(*row) for row in found.fetchall()]


def _put(connection: sqlite3.Connection, account: str, held: Hold) -> None:
    connection.execute(_PUT, (account, *astuple(held), time.time()))


def _lives(process: str) -> bool:
    where, pid, started = process.rsplit(" ", 2)
    return where == host() and is_alive(int(pid), started)

"""A connection to the database that survives its restart: work is repeated until it is done, for a bounded time."""

import logging
import os
import threading
import time
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from eval_pipeline.core.errors import EvalError, MissingExtraError, StoreError
from eval_pipeline.core.installed.plugins import install
from eval_pipeline.state.place import DATABASE_URL
from eval_pipeline_plugins.postgres.address import DatabaseAddress
from eval_pipeline_plugins.postgres.tables import prepare

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

PATIENCE_S = 120.0
"""How long work waits for a database that was there before: it may be restarted, or recover after a crash."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 2.0
_CONNECT_S = 10
IDLE_S = 20
"""After that time without a word in the midst of a transaction, the server ends it: its locks would stop everybody."""
_STARTING, _DEADLOCK, _SERIALIZATION = "57P03", "40P01", "40001"
_KEEPALIVE, _UNANSWERED_MS = (10, 5, 3), 25_000
"""TCP: seconds of silence before and between questions, their number, and when unanswered data ends a connection."""
_IDLE = "25P03"
_SHUT_DOWN = frozenset({"57P01", "57P02", _STARTING, _IDLE})
_FULL, _NO_PERMISSION, _READ_ONLY = "53100", "42501", "25006"
_log = logging.getLogger(__name__)
_reached = set[tuple[int, str]]()
"""Databases that this process has been connected to, by process id and URL."""


class Session:
    """One connection, made when it is first needed and again after it broke. It may be shared by threads.

    Attributes:
        broke_at: when work last failed, on this process's monotonic clock in seconds.
    """

    def __init__(self, address: DatabaseAddress, *, patience_s: float | None = None) -> None:
        """Does not connect yet.

        Args:
            address: the database.
            patience_s: how long to wait for it once it was reached; `PATIENCE_S` by default.
        """
        self.address = address
        self._patience_s = patience_s
        self.broke_at = -inf
        self._connection: psycopg.Connection | None = None
        self._turn = threading.Lock()

    def run(self, work: "Callable[[psycopg.Connection], T]") -> T:
        """Does work on the connection, which is in autocommit mode, and returns its result.

        The work is repeated if the connection breaks, possibly after it was done: doing it twice must do no harm.

        Raises:
            StoreError: the database refuses, or was away for too long.
            MissingExtraError: the extra `postgres` is not installed.
        """
        errors = _errors()
        patience = PATIENCE_S if self._patience_s is None else self._patience_s
        give_up, pause, told = time.monotonic() + patience, _FIRST_PAUSE_S, False
        while True:
            try:
                with self._turn:
                    return work(self._connected())
            except errors as error:
                self.broke_at = time.monotonic()
                if not self._passes(error) or time.monotonic() + pause > give_up:
                    raise self._store_error(error) from None  # the cause may quote the password
                if not told and pause > 1.0:
                    _log.warning("the database %s is away; waiting for it for up to %g s", self.address, patience)
                    told = True
            time.sleep(pause)
            pause = min(pause * 1.6, _LONGEST_PAUSE_S)

    def close(self) -> None:
        """Closes the connection; may be called repeatedly."""
        with self._turn:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _connected(self) -> "psycopg.Connection":
        if self._connection is not None and not self._connection.closed:
            return self._connection
        self._connection = connect(self.address)
        _reached.add((os.getpid(), self.address.url))
        return self._connection

    def _passes(self, error: "psycopg.Error") -> bool:
        """Whether the same work may succeed a little later."""
        import psycopg

        if error.sqlstate in {*_SHUT_DOWN, _DEADLOCK, _SERIALIZATION}:
            return True
        if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return False
        was_there = (os.getpid(), self.address.url) in _reached
        broken = self._connection is None or self._connection.closed
        return broken and (was_there or "starting up" in str(error))

    def _store_error(self, error: "psycopg.Error") -> StoreError:
        said = self.address.without_password(" ".join(str(error).split()))[:300]
        what = {
            _FULL: "has no room on its disk; nothing recorded is lost: free some space there and start the run again",
            _NO_PERMISSION: "does not let its user do this; the user has to own the database (docs/scale.md)",
            _READ_ONLY: "is read-only; nothing recorded is lost: name the primary server and start the run again",
        }.get(
            error.sqlstate or "",
            f"cannot be used; nothing recorded is lost: check {DATABASE_URL} and the server, and start the run again",
        )
        return StoreError(f"the database {self.address} {what} ({said})")


def connect(address: DatabaseAddress) -> "psycopg.Connection":
    """Opens a connection in autocommit mode, with the tables of ours.

    Raises:
        psycopg.Error: the server cannot be reached, or refuses.
    """
    import psycopg

    connection = psycopg.connect(address.url, autocommit=True, **settings())
    try:
        # What is acknowledged is on the server's disk, whatever its default is.
        connection.execute("SET synchronous_commit = on")
        # A host that vanishes or stops, with locks, is noticed by the server soon, too.
        connection.execute(
            f"SET tcp_keepalives_idle = {_KEEPALIVE[0]}; SET tcp_keepalives_interval = {_KEEPALIVE[1]}; "
            f"SET tcp_keepalives_count = {_KEEPALIVE[2]}; SET tcp_user_timeout = {_UNANSWERED_MS}; "
            f"SET idle_in_transaction_session_timeout = '{IDLE_S}s'"
        )
        prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def settings() -> dict[str, Any]:
    """Returns libpq's settings: a network that is gone is noticed within half a minute, and nothing replaces TLS."""
    return {
        "connect_timeout": _CONNECT_S,
        "keepalives_idle": _KEEPALIVE[0],
        "keepalives_interval": _KEEPALIVE[1],
        "keepalives_count": _KEEPALIVE[2],
        "tcp_user_timeout": _UNANSWERED_MS,
        "gssencmode": "disable",
        "application_name": "eval-pipeline",
    }


def _errors() -> "type[psycopg.Error]":
    try:
        import psycopg
    except ImportError as error:
        raise missing() from error
    return psycopg.Error


def missing() -> EvalError:
    """Returns the error for an extra that is not installed."""
    return MissingExtraError(f"{DATABASE_URL} needs psycopg; {install('postgres')}")

"""Leases: locks that several hosts share. They end by the database's clock if their holder does not renew them.

Each taking of a lease has a fencing number of its own. It is compared in the transaction that reserves money, so that
a holder that was stopped, lost its lease, and wakes up again cannot pay. While nobody else has taken the lease, its
holder keeps it, however late it renews.
"""

import atexit
import logging
import os
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.core.system.days import since_boot
from eval_pipeline.core.system.processes import UNKNOWN, host, is_alive, worldwide_mark
from eval_pipeline.state.leases import process_name
from eval_pipeline_plugins.postgres.address import DatabaseAddress, database_address
from eval_pipeline_plugins.postgres.session import Session

if TYPE_CHECKING:
    from psycopg import Connection

LEASE_S = "EVAL_LEASE_SECONDS"
"""Environment variable: seconds until the leases of a host that is gone are free; the same on all hosts."""
_DEFAULT_S, _LEAST_S = 60.0, 1.0
_RENEWALS = 4
"""How often a lease is renewed in its time."""
_AGAIN_S = 1.0
"""After that time, a renewal that failed is tried again, so that a holder is back before others believe it gone."""
_SHORT_S = 0.2
"""Patience of renewals: enough to connect again after a restart of the server."""
_log = logging.getLogger(__name__)

# After its start, the database waits for one lease's time before it believes that a lease has expired: while it was
# away, nobody could renew. So does a process that was cut off from it: others may have been as well. The same number
# guards two takings of one name, of which only one can succeed.
_EXPIRED = """%(calm)s AND l.expires_at <= clock_timestamp()
AND pg_postmaster_start_time() + %(life)s::interval <= clock_timestamp()"""
_TAKE = f"""
INSERT INTO eval_pipeline.leases AS l (name, owner, fence, expires_at)
VALUES (%(name)s, %(owner)s, nextval('eval_pipeline.fences'), clock_timestamp() + %(life)s::interval)
ON CONFLICT (name) DO UPDATE SET
    owner = excluded.owner, fence = excluded.fence, expires_at = excluded.expires_at, taken_at = clock_timestamp(),
    calls = 0, tokens = 0, usd = 0
WHERE ({_EXPIRED}) OR l.owner = excluded.owner
RETURNING fence"""
_RENEW = """
UPDATE eval_pipeline.leases AS l SET expires_at = clock_timestamp() + %(life)s::interval
FROM unnest(%(names)s::text[], %(fences)s::bigint[]) AS held(name, fence)
WHERE l.name = held.name AND l.fence = held.fence
RETURNING l.fence"""
_RESERVE = """
UPDATE eval_pipeline.leases SET
    expires_at = clock_timestamp() + %(life)s::interval,
    calls = calls + %(calls)s, tokens = tokens + %(tokens)s, usd = usd + %(usd)s
WHERE name = %(name)s AND fence = %(fence)s
RETURNING fence"""


class LostLeaseError(StoreError):
    """Another run has taken a lease, since its holder had stopped for longer than a lease lasts."""


@dataclass(eq=False, slots=True)
class PostgresLease:
    """A lease that this process has taken.

    Attributes:
        fence: its fencing number.
        good_until: until when nobody else can have taken it, by `since_boot`.
        lost: whether another one is known to have it.
    """

    name: str
    fence: int
    good_until: float
    _leases: "PostgresLeases" = field(repr=False)
    lost: bool = False

    def reserve(self, calls: int, tokens: int, usd: float) -> None:
        """Allows calls that may cost so much, in the transaction that checks the fencing number.

        Raises:
            LostLeaseError: another run has the lease; nothing must be paid.
            StoreError: the database cannot be used.
        """
        self._leases.reserve(self, calls, tokens, usd)

    def check(self) -> None:
        """Raises LostLeaseError if another run has the lease."""
        self.reserve(0, 0, 0.0)

    def check_in(self, connection: "Connection") -> None:
        """Raises LostLeaseError if another run has the lease; it cannot take it before the transaction ends."""
        query = "SELECT 1 FROM eval_pipeline.leases WHERE name = %s AND fence = %s FOR SHARE"
        if connection.execute(query, (self.name, self.fence)).fetchone() is None:
            raise self.lose()

    def release(self) -> None:
        """Frees it, unless another one has it by now. If the database is away, it ends by itself."""
        self._leases.release(self)

    def lose(self) -> LostLeaseError:
        """Returns the error of a holder whose lease another one has."""
        self.lost = True
        return LostLeaseError(
            f"another run has taken over '{self.name}', since this one had stopped for longer than its lease of "
            f"{self._leases.life_s:g} s; it asks and writes nothing more: see whether the other one has done the work"
        )


class PostgresLeases:
    """The leases of this process in one database; a thread renews them."""

    def __init__(self, address: DatabaseAddress, life_s: float) -> None:
        self.address, self.life_s = address, life_s
        self._session = Session(address)
        self._renewing = Session(address, patience_s=_SHORT_S)
        self._held = dict[int, PostgresLease]()
        self._turn, self._naming = threading.Lock(), threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._process: PostgresLease | None = None

    def take(self, name: str) -> PostgresLease | None:
        """Takes a lease that nobody holds; returns None if somebody does. Raises StoreError."""
        owner = f"{worldwide_mark()} {uuid.uuid4().hex}"
        self.free_of_dead(name)
        began = since_boot()
        row = self._first(_TAKE, name, owner=owner)
        if not isinstance(row, tuple):
            return None
        lease = PostgresLease(name, row[0], began + self.life_s, self)
        with self._turn:
            self._held[lease.fence] = lease
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep, name="leases", daemon=True)
                self._thread.start()
        return lease

    def release(self, lease: PostgresLease) -> None:
        """Frees a lease, unless another one has it by now. If the database is away, it ends by itself."""
        with self._turn:
            self._held.pop(lease.fence, None)
        query = "DELETE FROM eval_pipeline.leases WHERE name = %s AND fence = %s"
        try:
            self._renewing.run(lambda connection: connection.execute(query, (lease.name, lease.fence)).rowcount)
        except StoreError as error:
            _log.warning("the lease of '%s' could not be freed and ends by itself (%s)", lease.name, error)

    def reserve(self, lease: PostgresLease, calls: int, tokens: int, usd: float) -> None:
        """See `PostgresLease.reserve`."""
        values = {"name": lease.name, "fence": lease.fence, "life": self._life}
        values |= {"calls": calls, "tokens": tokens, "usd": usd}
        began = since_boot()
        if self._session.run(lambda connection: connection.execute(_RESERVE, values).fetchone()) is None:
            raise lease.lose()
        lease.good_until = began + self.life_s

    def process(self) -> PostgresLease:
        """Returns the lease by which others see that this process is alive; it is kept until the process ends.

        Raises:
            LostLeaseError: the process had stopped for so long that others took it for dead.
        """
        with self._naming:  # threads that ask at the same time share it
            known = self._process
            if known is None:
                known = self.take(process_name(worldwide_mark()))
                if known is None:
                    raise StoreError(f"another process in {self.address} has the name of this one; start the run again")
                self._process = known
        if known.lost:
            raise known.lose()
        return known

    def is_held(self, name: str) -> bool:
        """Whether somebody holds a lease. Raises StoreError."""
        return bool(
            self._first(f"SELECT 1 FROM eval_pipeline.leases l WHERE name = %(name)s AND NOT ({_EXPIRED})", name)
        )

    def lives(self, process: str) -> bool:
        """Whether the lease of a process (`worldwide_mark`) is held, or it runs on this host. Raises StoreError."""
        name = process_name(process)
        self.free_of_dead(name)
        where, pid, started = process.rsplit(" ", 2)
        return self.is_held(name) or (where == host() and is_alive(int(pid), started))

    def held(self, prefix: str) -> dict[str, float]:
        """Returns the leases that somebody holds and that begin so: their names, and seconds since the last renewal.

        Raises StoreError.
        """
        silent = "extract(epoch FROM clock_timestamp() + %(life)s::interval - expires_at)::float8"
        query = f"SELECT name, {silent} FROM eval_pipeline.leases l WHERE starts_with(name, %(name)s)"
        query = f"{query} AND NOT ({_EXPIRED})"
        rows = self._session.run(lambda connection: connection.execute(query, self._values(prefix)).fetchall())
        return dict(rows)

    def end_expired(self, name: str) -> bool:
        """Ends a lease if it has expired, so that its holder can never renew it; returns whether nobody holds it now.

        Raises StoreError.
        """
        self._first(f"DELETE FROM eval_pipeline.leases l WHERE name = %(name)s AND {_EXPIRED} RETURNING 1", name)
        return not self._first("SELECT 1 FROM eval_pipeline.leases WHERE name = %(name)s", name)

    def close(self) -> None:
        """Frees all leases and ends the thread."""
        self._ended.set()
        for lease in list(self._held.values()):
            self.release(lease)
        self._session.close()
        self._renewing.close()

    @property
    def _life(self) -> str:
        return f"{self.life_s} seconds"

    def _values(self, name: str) -> dict[str, object]:
        calm = time.monotonic() - max(self._session.broke_at, self._renewing.broke_at) > self.life_s
        return {"name": name, "life": self._life, "calm": calm}

    def _first(self, query: str, name: str, **more: str) -> object:
        # The values are looked at in each try, since one may have failed before.
        return self._session.run(lambda connection: connection.execute(query, self._values(name) | more).fetchone())

    def free_of_dead(self, name: str) -> None:
        """Frees a lease at once whose holder was a process of this machine and is gone.

        Where the machine is unknown, another host may have this one's name, and leases end by time only. Raises
        StoreError.
        """
        row = self._first("SELECT owner, fence FROM eval_pipeline.leases WHERE name = %(name)s", name)
        if not isinstance(row, tuple):
            return
        where, pid, started, _ = str(row[0]).rsplit(" ", 3)
        if where == host() and not where.endswith(f"@{UNKNOWN}") and not is_alive(int(pid), started):
            query = "DELETE FROM eval_pipeline.leases WHERE name = %s AND fence = %s"
            self._session.run(lambda connection: connection.execute(query, (name, row[1])).rowcount)

    def _keep(self) -> None:
        """Renews the leases until the process ends."""
        pause = usual = self.life_s / _RENEWALS
        while not self._ended.wait(pause):
            pause = usual
            with self._turn:
                held = dict(self._held)
            if held:
                try:
                    self._renew(held)
                except Exception as error:  # the database is away: the next round tries again, soon
                    pause = min(usual, _AGAIN_S)
                    _log.info("leases could not be renewed (%s)", error)

    def _renew(self, held: dict[int, PostgresLease]) -> None:
        values = {"names": [lease.name for lease in held.values()], "fences": list(held), "life": self._life}
        began = since_boot()
        rows = self._renewing.run(lambda connection: connection.execute(_RENEW, values).fetchall())
        renewed = {row[0] for row in rows}
        for fence, lease in held.items():
            if fence in renewed:
                lease.good_until = began + self.life_s
            elif fence in self._held:
                lease.lost = True
                with self._turn:
                    self._held.pop(fence, None)
                _log.warning("%s", lease.lose())


def open_leases() -> PostgresLeases | None:
    """Returns the leases of this process; None without a database.

    Raises:
        UsageError: the database's address or the time of a lease is malformed.
    """
    address = database_address()
    if address is None:
        return None
    key = (os.getpid(), address.url, _life_s())
    with _opening:
        if key not in _opened:
            _opened[key] = PostgresLeases(address, key[2])
            atexit.register(_opened[key].close)
        return _opened[key]


_opened = dict[tuple[int, str, float], PostgresLeases]()
_opening = threading.Lock()


def _life_s() -> float:
    text = os.environ.get(LEASE_S, "").strip()
    try:
        found = float(text) if text else _DEFAULT_S
    except ValueError:
        found = 0.0
    if not _LEAST_S <= found <= 86_400:
        raise UsageError(f"{LEASE_S} is '{text}'; expected seconds, from {_LEAST_S:g} to 86400")
    return found

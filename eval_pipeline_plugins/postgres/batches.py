"""The table of batches in the database."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from eval_pipeline.asking.batches.table import COLUMNS, BatchRow, BatchRows, batch_digest
from eval_pipeline_plugins.postgres.leases import PostgresLease, open_leases
from eval_pipeline_plugins.postgres.session import Session

if TYPE_CHECKING:
    from psycopg import Connection

T = TypeVar("T")

_ALL = f"SELECT {', '.join(COLUMNS)}, digest FROM eval_pipeline.batches"
_PUT = f"""
INSERT INTO eval_pipeline.batches({", ".join(COLUMNS)}, digest) VALUES ({", ".join(["%s"] * (len(COLUMNS) + 1))})
ON CONFLICT (intent_id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in (*COLUMNS[1:], "digest"))}"""


@dataclass(frozen=True, slots=True)
class _Rows:
    connection: "Connection"

    def all(self) -> list[BatchRow]:
        return list(self.connection.execute(_ALL).fetchall())

    def put(self, row: Sequence[Any]) -> None:
        self.connection.execute(_PUT, (*row, batch_digest(row)))


@dataclass(frozen=True, slots=True)
class PostgresBatchTable:
    """The table of batches of a database.

    Attributes:
        lease: that of the run that pays for batches; None for those who only look.
    """

    session: Session
    lease: PostgresLease | None = None

    @property
    def place(self) -> str:
        """The database's address."""
        return str(self.session.address)

    def read(self, work: Callable[[BatchRows], T]) -> T:
        """Returns what the work finds in the rows. Raises StoreError."""
        return self.session.run(lambda connection: work(_Rows(connection)))

    def write(self, work: Callable[[BatchRows], T], *, paying: bool = False) -> T:
        """Does work in an exclusive transaction, which is durable when this returns.

        Raises:
            LostLeaseError: it would pay, and another run has the lease.
            StoreError: the database cannot be used.
        """

        def write_once(connection: "Connection") -> T:
            with connection.transaction():
                connection.execute("LOCK TABLE eval_pipeline.batches IN EXCLUSIVE MODE")
                if paying and self.lease is not None:
                    self.lease.check_in(connection)
                return work(_Rows(connection))

        return self.session.run(write_once)

    def lives(self, owner: str) -> bool | None:
        """Whether the lease of a process is held, or it runs on this host. Raises StoreError."""
        leases = open_leases()
        return None if leases is None else leases.lives(owner)

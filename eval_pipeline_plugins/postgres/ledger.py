"""The ledger in the database, for several hosts."""

import time
from dataclasses import astuple
from typing import TYPE_CHECKING

from eval_pipeline.asking.spending.ledger import COLUMNS, KEPT_S, Claim, Hold, answer_to
from eval_pipeline_plugins.postgres.address import DatabaseAddress
from eval_pipeline_plugins.postgres.leases import open_leases
from eval_pipeline_plugins.postgres.session import Session
from eval_pipeline_plugins.postgres.upkeep import execute

if TYPE_CHECKING:
    from psycopg import Connection

_SCHEMA = """
CREATE TABLE IF NOT EXISTS eval_pipeline.spending(
    account TEXT NOT NULL, holder TEXT NOT NULL, purpose TEXT NOT NULL, usd DOUBLE PRECISION NOT NULL,
    in_flight BIGINT NOT NULL, refused BIGINT NOT NULL, written_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (account, holder)
)"""
_PUT = f"""
INSERT INTO eval_pipeline.spending(account, {COLUMNS}, written_at) VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (account, holder) DO UPDATE SET
    usd = excluded.usd, in_flight = excluded.in_flight, refused = excluded.refused, written_at = excluded.written_at"""
_TURN = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


class PostgresLedger:
    """A ledger in a table. What is repeated after a broken connection writes the same again."""

    def __init__(self, address: DatabaseAddress) -> None:
        """Makes the table if needed, and deletes old rows. Raises StoreError."""
        self._session, self._leases = Session(address), open_leases()
        self._session.run(_prepare)
        if self._leases is not None:
            self._leases.process()  # by which other hosts see that this process is alive

    def claim(self, account: str, limit: float, now: Hold, then: Hold) -> Claim:
        """See `Ledger`."""

        def claim(connection: "Connection") -> tuple[Claim, list[Hold]]:
            with connection.transaction():
                connection.execute(_TURN, (account,))
                rows = _rows(connection, account)
                answer = answer_to(rows, limit, now, then, lambda _: True)
                connection.execute(_PUT, _values(account, then if answer is Claim.GRANTED else now))
            return answer, rows

        answer, rows = self._session.run(claim)
        if answer is not Claim.LATER:
            return answer
        # Who is alive is asked outside the transaction, since it needs the same connection.
        return answer_to(rows, limit, now, then, self._lives)

    def put(self, account: str, now: Hold) -> None:
        """See `Ledger`."""
        execute(self._session, _PUT, *_values(account, now))

    def rows(self, account: str) -> list[Hold]:
        """See `Ledger`."""
        return self._session.run(lambda connection: _rows(connection, account))

    def close(self) -> None:
        """Closes the connection."""
        self._session.close()

    def _lives(self, process: str) -> bool:
        return self._leases is not None and self._leases.lives(process)


def _prepare(connection: "Connection") -> None:
    with connection.transaction():
        connection.execute(_TURN, ("eval_pipeline.spending",))
        connection.execute(_SCHEMA)
        connection.execute("DELETE FROM eval_pipeline.spending WHERE written_at <= %s", (time.time() - KEPT_S,))


def _rows(connection: "Connection", account: str) -> list[Hold]:
    found = connection.execute(f"SELECT {COLUMNS} FROM eval_pipeline.spending WHERE account = %s", (account,))
    return [Hold(*row) for row in found.fetchall()]


def _values(account: str, held: Hold) -> tuple[object, ...]:
    return (account, *astuple(held), time.time())

"""The journal in the database: every model response is on the server's disk before it is used."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from eval_pipeline.asking.journal.grouped import GroupedJournal
from eval_pipeline.asking.journal.rows import Row, digest_of, fresh_of, is_whole
from eval_pipeline.core.errors import EvalError, StoreError
from eval_pipeline_plugins.postgres.address import DatabaseAddress
from eval_pipeline_plugins.postgres.batches import PostgresBatchTable
from eval_pipeline_plugins.postgres.leases import PostgresLease
from eval_pipeline_plugins.postgres.session import Session

if TYPE_CHECKING:
    from psycopg import Connection

_APPEND = """
INSERT INTO eval_pipeline.responses(key, body, digest, written_at)
SELECT key, body, digest, %s FROM unnest(%s::text[], %s::bytea[], %s::bytea[]) AS new(key, body, digest)
ON CONFLICT DO NOTHING RETURNING key"""
_EQUAL = """
SELECT r.key FROM eval_pipeline.responses r
JOIN unnest(%s::text[], %s::bytea[]) AS new(key, digest) ON r.key = new.key AND r.digest = new.digest"""
_READ = "SELECT key, body, digest FROM eval_pipeline.responses WHERE key = ANY(%s)"
_KNOWN = "SELECT key FROM eval_pipeline.responses WHERE key = ANY(%s)"


class PostgresJournal(GroupedJournal):
    """Responses by key, in one table. `get` and `contains_many` may be called from any thread."""

    def __init__(self, address: DatabaseAddress, *, lease: PostgresLease | None = None) -> None:
        """Connects, and makes the tables if needed.

        Args:
            address: the database.
            lease: that of the run that asks; without it, batches are only looked at.

        Raises:
            StoreError: the database cannot be used.
        """
        self._reading, self._writing = Session(address), Session(address)
        self._lease = lease
        self._looks: dict[asyncio.AbstractEventLoop, tuple[list[str], asyncio.Task[dict[str, bytes]]]] = {}
        self._reading.run(lambda connection: None)
        self._start()

    @property
    def place(self) -> str:
        """The database's address."""
        return str(self._reading.address)

    @property
    def batches(self) -> PostgresBatchTable:
        """The table of batches in the same database."""
        return PostgresBatchTable(self._reading, self._lease)

    def get(self, key: str) -> bytes | None:
        """Returns the body recorded under the key, or None. Raises StoreError."""
        return self.get_many([key]).get(key)

    async def find(self, key: str) -> bytes | None:
        """Returns what `get` does; the event loop goes on, so that no answer that is paid for misses its deadline.

        All who look in one turn of the loop share a query.
        """
        loop = asyncio.get_running_loop()
        if loop not in self._looks:
            keys: list[str] = []
            self._looks[loop] = (keys, loop.create_task(self._look(loop, keys)))
        keys, found = self._looks[loop]
        keys.append(key)
        return (await asyncio.shield(found)).get(key)

    async def _look(self, loop: asyncio.AbstractEventLoop, keys: list[str]) -> dict[str, bytes]:
        await asyncio.sleep(0)
        del self._looks[loop]
        return await asyncio.to_thread(self.get_many, keys)

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Returns the bodies recorded under any of the keys.

        Raises:
            StoreError: the database cannot be used, or one of the rows is damaged.
        """
        rows = self._reading.run(lambda connection: connection.execute(_READ, (list(keys),), binary=True).fetchall())
        for row in rows:
            if not is_whole(*row):
                raise StoreError(
                    f"the journal {self.place} is damaged: the response under {row[0]} is not as it was written; run "
                    "`eval-pipeline doctor --repair`, which keeps every response that is whole"
                )
        return {key: body for key, body, _ in rows}

    def contains_many(self, keys: Iterable[str]) -> set[str]:
        """Returns those of the keys that are recorded. Raises StoreError."""
        wanted = list(keys)
        return {row[0] for row in self._reading.run(lambda one: one.execute(_KNOWN, (wanted,)).fetchall())}

    def _write(self, rows: list[Row]) -> list[bool]:
        # Of rows with equal keys, the first stays.
        first = dict(reversed(rows))
        keys, bodies = list(first), list(first.values())
        digests = [digest_of(key, body) for key, body in first.items()]
        tries = 0

        def append(connection: "Connection") -> set[str]:
            nonlocal tries
            tries += 1
            values = (int(time.time()), keys, bodies, digests)
            new = {row[0] for row in connection.execute(_APPEND, values, binary=True)}
            if tries > 1 and len(new) < len(keys):  # the try before may have been committed, though nobody said so
                new |= {row[0] for row in connection.execute(_EQUAL, (keys, digests), binary=True)}
            return new

        return fresh_of(rows, self._writing.run(append))

    def _failure(self, error: Exception) -> Exception:
        # One exception per waiter, since a shared one would collect everybody's traceback.
        if isinstance(error, EvalError):
            return type(error)(str(error))
        return StoreError(f"cannot write the journal {self.place}: {error!r}")

    def _writer_ended(self) -> None:
        self._writing.close()

    def _reader_ended(self) -> None:
        self._reading.close()

"""Judgements in the database."""

from collections.abc import Callable

from eval_pipeline.core.errors import StoreError
from eval_pipeline_plugins.postgres.address import DatabaseAddress
from eval_pipeline_plugins.postgres.session import Session
from eval_pipeline_plugins.postgres.upkeep import delete, execute, rewrite, rows_of

_PUT = """
INSERT INTO eval_pipeline.judgements(key, body, written_at) VALUES (%s, %s, %s)
ON CONFLICT (key) DO UPDATE SET body = excluded.body, written_at = excluded.written_at"""
_FORGET = "DELETE FROM eval_pipeline.judgements WHERE written_at <= %s"


class PostgresShelf:
    """A shelf in a table."""

    far = True

    def __init__(self, address: DatabaseAddress) -> None:
        self._session = Session(address)

    @property
    def place(self) -> str:
        """The database's address."""
        return f"in {self._session.address}"

    def open(self, oldest: float) -> None:
        """Deletes old judgements."""
        execute(self._session, _FORGET, oldest)

    def get(self, key: str, oldest: float) -> str | None:
        """Returns what was put under the key after that time, or None."""
        query = "SELECT body FROM eval_pipeline.judgements WHERE key = %s AND written_at > %s"
        row = self._session.run(lambda connection: connection.execute(query, (key, oldest)).fetchone())
        return None if row is None else str(row[0])

    def put(self, key: str, body: str, now: float) -> None:
        """Stores an encoded judgement."""
        execute(self._session, _PUT, key, body, now)

    def forget(self, oldest: float, *, dry_run: bool) -> int:
        """See `Shelf`."""
        count = "SELECT count(*) FROM eval_pipeline.judgements WHERE written_at <= %s"
        try:
            if not dry_run:
                return execute(self._session, _FORGET, oldest)
            row = self._session.run(lambda connection: connection.execute(count, (oldest,)).fetchone())
            return int(row[0]) if row else 0
        except StoreError:
            return 0

    def purge(self, goes: Callable[[str, str], bool], *, dry_run: bool) -> int:
        """See `Shelf`."""
        gone = [key for key, body in rows_of(self._session, "judgements", ("key", "body")) if goes(key, body)]
        if not dry_run:
            delete(self._session, "judgements", "key", gone)
            rewrite(self._session, "judgements")
        return len(gone)

    def close(self) -> None:
        """Closes the connection."""
        self._session.close()

"""State in a database that several hosts share."""

from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.home import Home
from eval_pipeline.state.leases import Lease
from eval_pipeline.state.place import UNFINISHED, StatePlace
from eval_pipeline_plugins.postgres.address import database_address

if TYPE_CHECKING:
    from psycopg import Connection

    from eval_pipeline.asking.journal.checking import Checked
    from eval_pipeline.asking.journal.purging import Goes, PurgedJournal
    from eval_pipeline.core.model import Response
    from eval_pipeline_plugins.postgres.journal import PostgresJournal
    from eval_pipeline_plugins.postgres.leases import PostgresLeases
    from eval_pipeline_plugins.postgres.ledger import PostgresLedger
    from eval_pipeline_plugins.postgres.shelf import PostgresShelf


class PostgresState(StatePlace):
    """The database that the environment names; nothing connects before it is used."""

    is_shared = True
    dagster_storage = ("eval_pipeline_plugins.postgres.dagster_storage", "PostgresStorage")

    def __init__(self) -> None:
        """Raises UsageError if the address is malformed or refused."""
        found = database_address()
        assert found is not None
        self._database = found
        self.address = str(found)

    def journal(self, path: Path, lease: Lease | None = None) -> "PostgresJournal":  # noqa: D102 as in `StatePlace`, like those below
        from eval_pipeline_plugins.postgres.journal import PostgresJournal
        from eval_pipeline_plugins.postgres.leases import PostgresLease

        assert lease is None or isinstance(lease, PostgresLease)
        return PostgresJournal(self._database, lease=lease)

    def checked_journal(self, path: Path) -> "Checked":  # noqa: D102
        from eval_pipeline_plugins.postgres.journal_upkeep import check

        return check(self._database)

    def pruned_journal(  # noqa: D102
        self, path: Path, unused: "Callable[[Response], bool]", before: float, *, dry_run: bool
    ) -> int:
        from eval_pipeline_plugins.postgres.journal_upkeep import prune

        return prune(self._database, unused, before, dry_run=dry_run)

    def purged_journal(  # noqa: D102
        self, path: Path, goes: "Goes", model_version: str, *, every_suite: bool, dry_run: bool
    ) -> "PurgedJournal":
        from eval_pipeline_plugins.postgres.journal_upkeep import purge

        return purge(self._database, goes, model_version, every_suite=every_suite, dry_run=dry_run)

    def mended_journal(self) -> tuple[str, str]:  # noqa: D102
        from eval_pipeline_plugins.postgres.journal_upkeep import mend

        whole, lost = mend(self._database)
        kept = f"{whole:,} whole responses are kept, the damaged ones are in the table eval_pipeline.damaged_responses"
        return kept, lost

    def ledger(self, home: Path) -> "PostgresLedger":  # noqa: D102
        from eval_pipeline_plugins.postgres.ledger import PostgresLedger

        return PostgresLedger(self._database)

    def shelf(self, path: Path) -> "PostgresShelf":  # noqa: D102
        from eval_pipeline_plugins.postgres.shelf import PostgresShelf

        return PostgresShelf(self._database)

    def leases(self) -> "PostgresLeases | None":  # noqa: D102
        from eval_pipeline_plugins.postgres.leases import open_leases

        return open_leases()

    def has_dagster(self, home: Home) -> bool:  # noqa: D102
        return True

    def has_unfinished_runs(self, home: Home) -> bool:  # noqa: D102
        from eval_pipeline_plugins.postgres.session import Session

        def look(connection: "Connection") -> bool:
            there = connection.execute("SELECT to_regclass('runs')").fetchone()
            if there is None or there[0] is None:
                return False
            query = "SELECT 1 FROM runs WHERE status = ANY(%s) LIMIT 1"
            return connection.execute(query, (list(UNFINISHED),)).fetchone() is not None

        try:
            with closing(Session(self._database)) as session:
                return session.run(look)
        except StoreError:
            return True

    def rewrite_dagster(self, tables: Collection[str]) -> None:  # noqa: D102
        from eval_pipeline_plugins.postgres.session import Session
        from eval_pipeline_plugins.postgres.upkeep import execute

        query = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename = ANY(%s)"
        with closing(Session(self._database)) as session:
            there = session.run(lambda connection: connection.execute(query, (list(tables),)).fetchall())
            for (table,) in there:
                execute(session, f"VACUUM FULL public.{table}")

    def told_of_dagster(self, error: BaseException) -> str | None:  # noqa: D102
        if not type(error).__module__.startswith("psycopg2"):
            return None
        said = self._database.without_password(" ".join(str(error).split()))
        return f"cannot use Dagster's tables in {self.address} ({said}); nothing recorded so far is lost"

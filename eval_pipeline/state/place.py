"""Where state is kept: in files of the home, or where a plug-in of the group `databases` keeps it."""

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.installed.plugins import Plugin, Registry
from eval_pipeline.state.leases import Lease, Leases

if TYPE_CHECKING:
    from eval_pipeline.asking.journal.checking import Checked
    from eval_pipeline.asking.journal.port import Journal
    from eval_pipeline.asking.journal.purging import Goes, PurgedJournal
    from eval_pipeline.asking.spending.ledger import Ledger
    from eval_pipeline.core.home import Home
    from eval_pipeline.core.model import Response
    from eval_pipeline.state.shelf import Shelf

DATABASE_URL = "EVAL_DATABASE_URL"
"""Environment variable: the address of the database; it may contain a password."""
UNFINISHED = ("STARTED", "STARTING", "CANCELING")
"""Dagster's statuses of runs on which a process works or worked."""
_SHIPPED = "postgresql"


@dataclass(frozen=True, slots=True)
class Spent:
    """What all have spent under an account.

    Attributes:
        usd: spent and reserved, in US dollars.
        refused: purpose → calls that the limit did not allow, if there were any.
    """

    usd: float
    refused: Mapping[str, int]


class StatePlace:
    """State in files of a home, which methods are given. What lies elsewhere derives from this.

    Attributes:
        is_shared: whether other hosts and homes may use it, too.
        address: of what is shared, for messages.
        dagster_storage: module and class of Dagster's storage; None for Dagster's own files.
    """

    is_shared = False
    address = ""
    dagster_storage: tuple[str, str] | None = None

    def journal(self, path: Path, lease: Lease | None = None) -> "Journal":
        """Opens the journal.

        Args:
            path: the home's file.
            lease: that of the run that asks.

        Raises:
            StoreError: it cannot be used.
        """
        from eval_pipeline.asking.journal.sqlite import SqliteJournal

        return SqliteJournal(path)

    def checked_journal(self, path: Path) -> "Checked | None":
        """Reads the whole journal and compares the checksum of every row; returns None if there is none yet.

        Raises:
            StoreError: it cannot be read, which says nothing about damage.
        """
        from eval_pipeline.asking.journal.checking import check_journal

        if not path.exists():
            return None
        try:
            return check_journal(path)
        except sqlite3.Error as error:
            raise StoreError(str(error)) from error

    def pruned_journal(self, path: Path, unused: "Callable[[Response], bool]", before: float, *, dry_run: bool) -> int:
        """Removes unused responses written before a given time; see `prune_journal`."""
        from eval_pipeline.asking.journal.pruning import prune_journal

        return prune_journal(path, unused, before, dry_run=dry_run)

    def purged_journal(
        self, path: Path, goes: "Goes", model_version: str, *, every_suite: bool, dry_run: bool
    ) -> "PurgedJournal":
        """Removes responses and batches for good; see `purge_journal`."""
        from eval_pipeline.asking.journal.purging import purge_journal

        return purge_journal(path, goes, model_version, every_suite=every_suite, dry_run=dry_run)

    def mended_journal(self) -> tuple[str, str] | None:
        """Sets damaged rows of the journal aside where they are.

        Returns:
            A clause about what is kept, and a sentence about damaged batches; None if a file has to be made anew.

        Raises:
            StoreError: it cannot be used.
        """
        return None

    def ledger(self, home: Path) -> "Ledger":
        """Opens the ledger. Raises StoreError."""
        from eval_pipeline.asking.spending.ledger import SqliteLedger

        return SqliteLedger(home / "spending.sqlite")

    def spent_under(self, home: Path, account: str) -> Spent:
        """Returns what is spent under an account of the ledger. Raises StoreError."""
        with closing(self.ledger(home)) as ledger:
            rows = ledger.rows(account)
        refused = Counter[str]()
        for row in rows:
            refused[row.purpose] += row.refused
        return Spent(sum(row.usd for row in rows), +refused)

    def shelf(self, path: Path) -> "Shelf":
        """Returns where judgements are kept, by the home's file; nothing is opened yet."""
        from eval_pipeline.state.shelf import SqliteShelf

        return SqliteShelf(path)

    def leases(self) -> Leases | None:
        """Returns the leases of this process; None where files tell who holds a lock. Raises UsageError."""
        return None

    def has_unfinished_runs(self, home: "Home") -> bool:
        """Whether a run of Dagster's is in progress or was left behind; asked without importing Dagster, for speed.

        Returns False without a database, e.g. if the user has chosen another storage, and True if it cannot be read.
        """
        path = home.dagster / "history" / "runs.db"
        if not path.is_file():
            return False
        marks = ", ".join("?" * len(UNFINISHED))
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
                query = f"SELECT EXISTS (SELECT 1 FROM runs WHERE status IN ({marks}))"
                return bool(connection.execute(query, UNFINISHED).fetchone()[0])
        except (sqlite3.Error, UnicodeDecodeError):  # see `SQLITE_FAILURES`
            return True

    def has_dagster(self, home: "Home") -> bool:
        """Whether Dagster has anything of the home."""
        return any(home.dagster.rglob("*.db"))

    def rewrite_dagster(self, tables: Collection[str]) -> None:
        """Rewrites shared tables of Dagster's without deleted data; files are rewritten wherever they are.

        Raises:
            StoreError: they cannot be used.
        """

    def told_of_dagster(self, error: BaseException) -> str | None:
        """Returns a sentence if Dagster could not use its shared tables."""
        return None


def _place(plugin: Plugin, value: object) -> type[StatePlace]:
    if not (isinstance(value, type) and issubclass(value, StatePlace)):
        raise plugin.error("is no class that inherits StatePlace")
    return value


ALL_DATABASES: Registry[type[StatePlace]] = Registry("databases", {}, _place)
"""What keeps state elsewhere, by the scheme of its address."""
_FILES = StatePlace()


def state_place() -> StatePlace:
    """Returns where state is, as the environment says.

    Raises:
        UsageError: the address is malformed or refused, or no package knows such databases.
    """
    url = os.environ.get(DATABASE_URL, "").strip()
    if not url:
        return _FILES
    return ALL_DATABASES.first((url.partition("://")[0], _SHIPPED), DATABASE_URL)()

"""The journal of a home: in its file, or in the database that the environment names."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from eval_pipeline.asking.journal.checking import Checked, check_journal
from eval_pipeline.asking.journal.port import Journal
from eval_pipeline.asking.journal.pruning import prune_journal
from eval_pipeline.asking.journal.purging import Goes, PurgedJournal, purge_journal
from eval_pipeline.asking.journal.sqlite import SqliteJournal
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.model import Response
from eval_pipeline.database.address import database_address

if TYPE_CHECKING:
    from eval_pipeline.database.leases import Lease


def open_journal(path: Path, lease: "Lease | None" = None) -> Journal:
    """Opens the journal.

    Args:
        path: the home's file, used without a database.
        lease: that of the run that asks.

    Raises:
        StoreError: it cannot be used.
        UsageError: the database's address is refused.
    """
    address = database_address()
    if address is None:
        return SqliteJournal(path)
    from eval_pipeline.asking.journal.postgres import PostgresJournal

    return PostgresJournal(address, lease=lease)


def journal_place(path: Path) -> str:
    """Returns where the journal is, for messages."""
    return str(database_address() or path)


def checked_journal(path: Path) -> Checked | None:
    """Reads the whole journal and compares the checksum of every row; returns None if there is none yet.

    Raises:
        StoreError: it cannot be read, which says nothing about damage.
    """
    address = database_address()
    if address is not None:
        from eval_pipeline.asking.journal.postgres_upkeep import check

        return check(address)
    if not path.exists():
        return None
    try:
        return check_journal(path)
    except sqlite3.Error as error:
        raise StoreError(str(error)) from error


def pruned_journal(path: Path, unused: Callable[[Response], bool], before: float, *, dry_run: bool) -> int:
    """Removes unused responses written before a given time; see `prune_journal`."""
    address = database_address()
    if address is None:
        return prune_journal(path, unused, before, dry_run=dry_run)
    from eval_pipeline.asking.journal.postgres_upkeep import prune

    return prune(address, unused, before, dry_run=dry_run)


def purged_journal(path: Path, goes: Goes, model_version: str, *, every_suite: bool, dry_run: bool) -> PurgedJournal:
    """Removes responses and batches for good; see `purge_journal`."""
    address = database_address()
    if address is None:
        return purge_journal(path, goes, model_version, every_suite=every_suite, dry_run=dry_run)
    from eval_pipeline.asking.journal.postgres_upkeep import purge

    return purge(address, goes, model_version, every_suite=every_suite, dry_run=dry_run)

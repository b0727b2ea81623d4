"""Checks, prunes, purges and mends a journal in the database."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from eval_pipeline.asking.batches.table import is_whole_batch
from eval_pipeline.asking.journal.checking import Checked
from eval_pipeline.asking.journal.pruning import is_unused
from eval_pipeline.asking.journal.purging import Goes, PurgedJournal, batches_of, who_goes
from eval_pipeline.asking.journal.rows import is_whole
from eval_pipeline.core.model import Response
from eval_pipeline_plugins.postgres.address import DatabaseAddress
from eval_pipeline_plugins.postgres.batches import PostgresBatchTable
from eval_pipeline_plugins.postgres.session import Session
from eval_pipeline_plugins.postgres.upkeep import delete, execute, rewrite, rows_of

_WHOLE = ("key", "body", "digest")


def check(address: DatabaseAddress) -> Checked:
    """Compares the checksum of every row. Raises StoreError if the database cannot be used."""
    with _session(address) as session:
        rows = 0
        for row in rows_of(session, "responses", _WHOLE):
            rows += 1
            if not is_whole(*row):
                return Checked(rows, 0, f"the response under {row[0]} is not as it was written")
        if not all(map(is_whole_batch, _batches(session))):
            return Checked(rows, 0, "a batch is not as it was written")
        return Checked(rows, 0, "")


def prune(address: DatabaseAddress, unused: Callable[[Response], bool], before: float, *, dry_run: bool) -> int:
    """Removes unused responses written before a given Unix time in seconds, and leases that ended long ago.

    Raises:
        StoreError: the database cannot be used.
    """
    with _session(address) as session:
        rows = rows_of(session, "responses", ("key", "body"), "written_at < %s", before)
        keys = [key for key, body in rows if is_unused(unused, body)]
        if not dry_run:
            delete(session, "responses", "key", keys)
            old = "DELETE FROM eval_pipeline.leases WHERE expires_at < clock_timestamp() - interval '1 day'"
            execute(session, old)
        return len(keys)


def purge(
    address: DatabaseAddress, goes: Goes, model_version: str, *, every_suite: bool, dry_run: bool
) -> PurgedJournal:
    """Removes responses and rewrites the tables without them; the server's own log and backups keep them longer.

    Raises:
        StoreError: the database cannot be used, or others use the tables.
    """
    with _session(address) as session:
        keys, of_nobody = who_goes(rows_of(session, "responses", ("key", "body")), goes)
        asked = None if every_suite else frozenset(keys)
        rows = rows_of(session, "batches", ("intent_id", "custom_ids"), "model_version = %s", model_version)
        batches = batches_of(rows, asked)
        if not dry_run:
            delete(session, "responses", "key", keys)
            delete(session, "batches", "intent_id", batches)
            execute(session, "DELETE FROM eval_pipeline.damaged_responses")  # nobody can say whose they are
            rewrite(session, "responses", "batches", "damaged_responses")
        return PurgedJournal(len(keys), of_nobody, len(batches))


def mend(address: DatabaseAddress) -> tuple[int, str]:
    """Moves damaged rows of responses aside; returns the number of whole ones, and a sentence about damaged batches.

    Damaged rows stay in `damaged_responses`, damaged batches are removed, since nobody could tell what they hold.

    Raises:
        StoreError: the database cannot be used.
    """
    with _session(address) as session:
        whole, damaged = 0, list[str]()
        for row in rows_of(session, "responses", _WHOLE):
            if is_whole(*row):
                whole += 1
            else:
                damaged.append(row[0])
        aside = """WITH gone AS (DELETE FROM eval_pipeline.responses WHERE key = ANY(%s) RETURNING *)
            INSERT INTO eval_pipeline.damaged_responses SELECT key, body, written_at, digest FROM gone"""
        execute(session, aside, damaged)
        batches = _batches(session)
        lost = [row[0] for row in batches if not is_whole_batch(row)]
        delete(session, "batches", "intent_id", lost)
        return whole, f"{len(lost)} of {len(batches)} batches are not as they were written" if lost else ""


@contextmanager
def _session(address: DatabaseAddress) -> Iterator[Session]:
    with closing(Session(address)) as session:
        yield session


def _batches(session: Session) -> Sequence[Any]:
    return PostgresBatchTable(session).read(lambda rows: rows.all())

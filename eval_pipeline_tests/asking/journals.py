"""Journals on both back ends, for tests of what they have in common."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psycopg

from eval_pipeline.asking.batches.table import COLUMNS, BatchRows
from eval_pipeline.asking.journal.port import Journal
from eval_pipeline.asking.journal.sqlite import SqliteJournal
from eval_pipeline_plugins.postgres.address import DatabaseAddress
from eval_pipeline_plugins.postgres.journal import PostgresJournal

TABLES = ("responses", "damaged_responses", "batches", "judgements", "leases")


@dataclass(frozen=True)
class Journals:
    """Opens one journal again and again.

    Attributes:
        where: path of its file, or URL of its database; other processes open it by `journal_at`.
    """

    where: str

    def open(self) -> Journal:
        return journal_at(self.where)

    def execute(self, statement: str) -> None:
        """Runs SQL that both know, beside the journal."""
        if is_url(self.where):
            with psycopg.connect(self.where, options="-c search_path=eval_pipeline") as connection:
                connection.execute(statement.encode())
        else:
            import sqlite3

            with sqlite3.connect(self.where) as connection:
                connection.execute(statement)


def is_url(where: str) -> bool:
    return where.startswith("postgresql://")


def journal_at(where: str) -> Journal:
    return PostgresJournal(DatabaseAddress(where, "the test's")) if is_url(where) else SqliteJournal(Path(where))


def emptied(url: str) -> str:
    """The same database, without rows in the tables of ours."""
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute("SELECT to_regclass('eval_pipeline.meta')").fetchone()
        if found and found[0]:
            connection.execute(f"TRUNCATE {', '.join(f'eval_pipeline.{name}' for name in TABLES)}".encode())
    return url


def change_batches(journal: Journal, changed: Callable[[dict[str, str]], dict[str, str]]) -> None:
    """Changes every batch, as a process of another host or an older one would have written it."""

    def work(rows: BatchRows) -> None:
        for row in rows.all():
            found = dict(zip(COLUMNS, row[:-1], strict=True))
            rows.put(tuple((found | changed(found)).values()))

    journal.batches.write(work)


def batch_states(journal: Journal) -> list[str]:
    """The states of the batches, oldest first."""
    rows = journal.batches.read(lambda rows: [dict(zip(COLUMNS, row[:-1], strict=True)) for row in rows.all()])
    return [row["state"] for row in sorted(rows, key=lambda row: datetime.fromisoformat(row["created_at"]))]

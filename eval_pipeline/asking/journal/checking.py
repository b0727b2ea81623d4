"""Checks a journal for damage."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from eval_pipeline.asking.batches.sqlite import batch_rows
from eval_pipeline.asking.batches.table import is_whole_batch
from eval_pipeline.asking.journal.rows import SQLITE_FAILURES, is_whole


class Checked(NamedTuple):
    """The result of checking a journal.

    Attributes:
        rows: number of readable responses.
        unsealed: number of those without a checksum, written by 0.1.0.
        problem: what is wrong, in a few words; empty if nothing is.
    """

    rows: int
    unsealed: int
    problem: str


def check_journal(path: Path) -> Checked:
    """Reads the whole journal: its pages, its index, and the checksum of every row.

    Raises:
        sqlite3.OperationalError: the file cannot be read, which says nothing about damage.
    """
    rows = unsealed = 0
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            said = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if said != "ok":
                return Checked(0, 0, " ".join(said.split()))
            has_checksums = connection.execute("PRAGMA user_version").fetchone()[0] > 1
            digest = "digest" if has_checksums else "NULL"
            for row in connection.execute(f"SELECT key, body, {digest} FROM responses"):
                rows += 1
                unsealed += row[2] is None
                if not is_whole(*row):
                    return Checked(rows, unsealed, f"the response under {row[0]} is not as it was written")
            if not all(map(is_whole_batch, batch_rows(connection))):
                return Checked(rows, unsealed, "a batch is not as it was written")
    except sqlite3.OperationalError:
        raise
    except SQLITE_FAILURES as error:
        return Checked(rows, unsealed, str(error))
    return Checked(rows, unsealed, "")

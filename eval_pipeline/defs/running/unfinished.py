"""Whether Dagster's database contains unfinished runs; asked without importing Dagster, which takes a second."""

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.home import Home
from eval_pipeline.database.address import DatabaseAddress, database_address

if TYPE_CHECKING:
    from psycopg import Connection

UNFINISHED = ("STARTED", "STARTING", "CANCELING")
"""Dagster's statuses of runs on which a process works or worked."""


def may_have_unfinished_runs(home: Home) -> bool:
    """Whether a run of the home, or of its database, is in progress or was left behind.

    Returns False without a database, e.g. if the user has chosen another storage, and True if it cannot be read.
    """
    if (address := database_address()) is not None:
        return _in_database(address)
    path = home.dagster / "history" / "runs.db"
    if not path.is_file():
        return False
    marks = ", ".join("?" * len(UNFINISHED))
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            query = f"SELECT EXISTS (SELECT 1 FROM runs WHERE status IN ({marks}))"
            return bool(connection.execute(query, UNFINISHED).fetchone()[0])
    except sqlite3.Error:
        return True


def _in_database(address: DatabaseAddress) -> bool:
    from eval_pipeline.database.session import Session

    def look(connection: "Connection") -> bool:
        there = connection.execute("SELECT to_regclass('runs')").fetchone()
        if there is None or there[0] is None:
            return False
        query = "SELECT 1 FROM runs WHERE status = ANY(%s) LIMIT 1"
        return connection.execute(query, (list(UNFINISHED),)).fetchone() is not None

    try:
        with closing(Session(address)) as session:
            return session.run(look)
    except StoreError:
        return True

"""Whether Dagster's database contains unfinished runs; asked without importing Dagster, which takes a second."""

import sqlite3
from contextlib import closing

from eval_pipeline.core.home import Home

UNFINISHED = ("STARTED", "STARTING", "CANCELING")
"""Dagster's statuses of runs on which a process works or worked."""


def may_have_unfinished_runs(home: Home) -> bool:
    """Whether a run of the home is in progress or was left behind.

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
    except sqlite3.Error:
        return True

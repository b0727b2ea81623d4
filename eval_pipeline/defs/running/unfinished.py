"""Whether Dagster's database knows of runs that have not ended, asked without loading Dagster, which takes a second."""

import sqlite3
from contextlib import closing

from eval_pipeline.core.home import Home

UNFINISHED = ("STARTED", "STARTING", "CANCELING")
"""Statuses, by Dagster's names, of runs that some process does or did."""


def may_have_unfinished_runs(home: Home) -> bool:
    """Whether a run of the home is under way or was left behind.

    False where there is no database, as where the user has chosen another storage; true where it cannot be asked.
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

"""Marks runs as failed if their process has ended, and explains errors of Dagster's own storage."""

import sqlite3
from typing import TYPE_CHECKING

from eval_pipeline.core.home import find_home
from eval_pipeline.state.place import state_place

if TYPE_CHECKING:
    from eval_pipeline.core.home import Home
    from eval_pipeline.workspace.workspace import Progress, Workspace


def sweep(home: "Home") -> int:
    """Marks runs as failed if their process has ended; returns how many."""
    if not state_place().has_unfinished_runs(home):
        return 0
    from eval_pipeline.defs.running.instance import open_instance, sweep_home

    with open_instance(home) as instance:
        return len(sweep_home(home, instance))


def begin(workspace: "Workspace", progress: "Progress") -> None:
    """Completes what killed commands and runs left, before a command that changes the home; says what is wrong."""
    from eval_pipeline.api.homes import FORGET
    from eval_pipeline.cli.terminal import note
    from eval_pipeline.operations.upkeep.completing import complete_left

    sweep(workspace.home)  # so that runs whose process has ended do not count as active
    for problem in complete_left(workspace, progress, forget=FORGET):
        note(f"warning: {problem}")


def of_dagsters_storage(error: Exception) -> str | None:
    """Returns a sentence if Dagster cannot use its SQLite files (often because the disk is full) or its database."""
    cause = getattr(error, "orig", None)
    if cause is not None and (told := state_place().told_of_dagster(cause)) is not None:
        return told
    place = find_home().dagster
    if isinstance(cause, sqlite3.OperationalError):
        return f"cannot use Dagster's files below {place} ({cause}): is the disk full? Nothing recorded so far is lost"
    if type(cause) is sqlite3.DatabaseError:  # its subclasses report wrong SQL statements
        return f"a file of Dagster's below {place} is damaged ({cause}): move the folder away. No result is in it"
    return None

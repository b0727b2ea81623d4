"""Scrubbing: reads everything that figures are based on, slowly, to detect damage early."""

import time
from collections.abc import Callable, Iterator

from eval_pipeline.core.errors import StoreError
from eval_pipeline.operations.upkeep.doctor import REPAIR, store_problem
from eval_pipeline.operations.upkeep.verifying import unreadable_files
from eval_pipeline.state.place import state_place
from eval_pipeline.store.parquet.reading import forget_verified
from eval_pipeline.workspace.workspace import Workspace

BYTES_A_SECOND = 50_000_000
"""Maximum read rate of a scrub in bytes per second; disks are about ten times as fast."""


def scrub(workspace: Workspace, rest: Callable[[float], None] = time.sleep) -> Iterator[str]:
    """Reads record, journal and store completely; yields a sentence for each damaged file.

    Args:
        workspace: the workspace.
        rest: called to wait for the given number of seconds.
    """
    forget_verified()
    for _, _, error in unreadable_files(workspace, lambda size: rest(size / BYTES_A_SECOND)):
        yield str(error)
    journal = workspace.home.journal
    if journal.exists():
        rest(journal.stat().st_size / BYTES_A_SECOND)
    try:
        found = state_place().checked_journal(journal)
        problem = found.problem if found else ""
    except StoreError as error:
        problem = str(error)
    if problem:
        yield f"the journal {state_place().address or journal} is damaged ({problem}); {REPAIR}"
    if wrong := store_problem(workspace, lambda size: rest(size / BYTES_A_SECOND)):
        yield wrong

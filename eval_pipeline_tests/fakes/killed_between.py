"""A program that evaluates until so many groups of answers are recorded, and is killed then."""

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

GROUP = 4


def main() -> None:
    """Evaluates `sim`; the number of groups is the only argument."""
    from eval_pipeline.asking.immediate_calls import ImmediateCaller
    from eval_pipeline.asking.journal.sqlite import SqliteJournal
    from eval_pipeline.core.home import find_home
    from eval_pipeline_tests.support import Lab

    append_many, left = SqliteJournal.append_many, int(sys.argv[1])

    async def until_killed(journal: SqliteJournal, rows: Sequence[Any]) -> list[bool]:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return await append_many(journal, rows)

    ImmediateCaller.together, SqliteJournal.append_many = GROUP, until_killed  # type: ignore[method-assign]
    Lab(find_home()).evaluate(version="sim", publish=True)

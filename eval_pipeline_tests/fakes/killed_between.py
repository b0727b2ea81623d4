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
    from eval_pipeline.asking.journal.sqlite import Journal
    from eval_pipeline.core.home import find_home
    from eval_pipeline_tests.support import Lab

    append_many, left = Journal.append_many, int(sys.argv[1])

    async def until_killed(journal: Journal, rows: Sequence[Any]) -> list[bool]:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return await append_many(journal, rows)

    ImmediateCaller.together, Journal.append_many = GROUP, until_killed  # type: ignore[method-assign]
    Lab(find_home()).evaluate(version="sim", publish=True)

"""An agent that makes calls, some at once, through a proxy in its own process; killed where the environment says."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from eval_pipeline.asking.journal.sqlite import SqliteJournal
from eval_pipeline_tests.asking.proxy.proxied import proxied

ROUNDS, TOGETHER = 6, 2


def main() -> None:
    """Arguments: the endpoint, the journal, and the number of entries after whose keeping it is killed (0: never)."""
    url, journal, left = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    append = SqliteJournal.append

    async def until_killed(self: SqliteJournal, key: str, body: bytes) -> bool:
        nonlocal left
        told = await append(self, key, body)
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return told

    SqliteJournal.append = until_killed  # type: ignore[method-assign]
    with SqliteJournal(journal) as opened:
        asyncio.run(_run(url, opened))


async def _run(url: str, journal: SqliteJournal) -> None:
    async with proxied(url, journal) as proxy:
        messages: list[Any] = []
        for number in range(ROUNDS):
            messages.append({"role": "user", "content": f"question {number}"})
            asking = (proxy.post(messages=messages, stream=bool(one), system=str(one)) for one in range(TOGETHER))
            said = await asyncio.gather(*asking)
            assert [answer.status_code for answer in said] == [200] * TOGETHER
            messages.append({"role": "assistant", "content": said[0].json()["content"][0]["text"]})
        assert len(proxy.calls) == ROUNDS * TOGETHER

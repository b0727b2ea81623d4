"""A slow provider that logs every request to a file, and a program that runs a suite with it: to be killed, or to
kill itself with the request of the number in LOGGED_KILL_AT.

python -m eval_pipeline_tests.fakes.logged        evaluates `small` with `logged` through the stages
python -m eval_pipeline_tests.fakes.logged run …  the command line, with the provider known to it
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import ClassVar

from eval_pipeline.core.home import find_home
from eval_pipeline.core.model import Json, Response, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Call, Environment
from eval_pipeline.providers.standins.inprocess import InProcess
from eval_pipeline_tests.support import BROKEN, Lab, number

PLACE = "eval_pipeline_tests.fakes.logged:LoggedProvider"


class LoggedProvider(InProcess):
    """Right on most turns, after a while; every fifth turn needs a recovery attempt, every seventh is wrong."""

    simulated: ClassVar[bool] = False
    recorded: ClassVar[bool] = False
    asked: ClassVar[int] = 0

    def __init__(self, version: ModelVersion, environment: Environment) -> None:
        self._log = Path(os.environ["LOGGED_REQUESTS"])
        self._latency_s = float(os.environ.get("LOGGED_LATENCY_S", "0"))

    def request(self, call: Call) -> Json:
        return {"turn": call.turn_id, "number": call.number, "prompt": call.prompt.text()}

    async def generate(self, call: Call) -> Response:
        # One write of a short line in append mode is whole, whenever the process is killed.
        with self._log.open("ab", buffering=0) as log:
            log.write(f"{call.turn_id} {call.number}\n".encode())
        LoggedProvider.asked += 1
        if LoggedProvider.asked == int(os.environ.get("LOGGED_KILL_AT", "0")):
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(self._latency_s)
        place = int(call.case_id.removeprefix("c")) + call.turn_index
        text = call.gold.oracle()
        if place % 5 == 0 and call.number == 0:
            text = BROKEN
        elif place % 7 == 0:
            text = number(-1)
        return Response(text, usage=Usage(100, 10 + place), latency_ms=float(place), asked_on="2026-03-01")


def main() -> None:
    from eval_pipeline.providers import registry

    registry.PROVIDERS["logged"] = PLACE  # type: ignore[index]
    if len(sys.argv) > 1:
        from eval_pipeline.cli import main as command

        command()
        return
    Lab(find_home()).evaluate("small", "logged", publish=True)


if __name__ == "__main__":
    main()

"""A host of its own for child processes: python -m eval_pipeline_tests.database.host NAME HOME DATA.

It makes the attempts of the suite `small` of `eval_pipeline_tests.remote`, without Dagster.
"""

import socket
import sys
from pathlib import Path

from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.home import Home
from eval_pipeline.stages.attempts import model_calls
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline_tests.remote import PACE, VERSION
from eval_pipeline_tests.support import Lab

STAGES = ("raw_dataset", "cases", "generations", "recovery_attempts")


def main(name: str, home: str, data: str) -> None:
    socket.gethostname = lambda: name
    model_calls.PACE = PACE
    lab = Lab(Home(Path(home), Path(data)))
    for stage in STAGES:
        lab.stage(stage, lab.inputs("small", VERSION, run=RunContext(name)))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except EvalError as error:
        sys.exit(str(error))

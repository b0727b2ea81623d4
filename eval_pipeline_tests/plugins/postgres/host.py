"""A host of its own, as a child process: NAME HOME DATA.

`attempts` makes those of the suite `small` of `eval_pipeline_tests.remote`, without Dagster; `command_line` runs it.
"""

import socket
import sys
from pathlib import Path

from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.home import Home
from eval_pipeline.stages.attempts import model_calls
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline_tests import remote
from eval_pipeline_tests.support import Lab

STAGES = ("raw_dataset", "cases", "generations", "recovery_attempts")


def attempts() -> None:
    name, home, data = sys.argv[1:]
    socket.gethostname = lambda: name
    model_calls.PACE = remote.PACE
    lab = Lab(Home(Path(home), Path(data)))
    try:
        for stage in STAGES:
            lab.stage(stage, lab.inputs("small", remote.VERSION, run=RunContext(name)))
    except EvalError as error:
        sys.exit(str(error))


def command_line() -> None:
    name = sys.argv[1]
    socket.gethostname = lambda: name
    sys.argv[1:] = remote.RUN
    remote.main()


if __name__ == "__main__":
    attempts()

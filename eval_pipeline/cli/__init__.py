"""The command line: a thin front on the stages and, for `run` and `dev`, on the Dagster definitions.

Commands import what they need inside their functions: `--help`, `query` and the like must not wait for dagster.
"""

import gc
import os
from typing import NoReturn


def main() -> NoReturn:
    """Entry point: runs the command and ends the process."""
    # All of this before anything large is imported.
    # Much is made, most of it kept, and little of it in cycles: looking for garbage as often as usual costs a twentieth
    # of all CPU time.
    gc.set_threshold(1_000_000, 20, 100)
    # Nothing here is large enough for several threads, and those of OpenBLAS spin while they wait.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # No plugin has anything to say to our models; to look for one, pydantic reads every package's metadata.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from eval_pipeline.cli.app import run_command

    run_command()

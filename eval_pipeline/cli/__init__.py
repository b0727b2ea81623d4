"""The command line: a thin layer over the stages and, for `run` and `dev`, over the Dagster definitions.

Commands import what they need inside their functions, so that `--help`, `query` and others need not wait for dagster.
"""

import gc
import os
from typing import NoReturn


def main() -> NoReturn:
    """Entry point: runs the command and ends the process."""
    # All of this must happen before any large import. A command creates many objects and keeps most of them, few in
    # cycles: garbage collection at the usual frequency would take a twentieth of all CPU time.
    gc.set_threshold(1_000_000, 20, 100)
    # Nothing here is large enough to need several threads, and OpenBLAS's threads use CPU time while they wait.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Arrow's own allocator keeps what it freed; the C library's gives it back when asked (`Workspace.forget`).
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    # No plug-in extends our pydantic models; without this, pydantic would read every package's metadata to find one.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from eval_pipeline.cli.app import run_command

    run_command()

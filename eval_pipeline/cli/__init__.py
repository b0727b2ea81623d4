"""The command line: a thin front on the stages and, for `run` and `dev`, on the Dagster definitions.

Commands import what they need inside their functions: `--help`, `query` and the like must not wait for dagster.
"""

from eval_pipeline.cli.app import main

__all__ = ["main"]

"""Dagster's daemon, which ends with its supervisor: `python -m eval_pipeline.defs.running.daemon run …`."""

from dagster._daemon.cli import main

from eval_pipeline.core.supervision import end_with_supervisor

if __name__ == "__main__":
    end_with_supervisor()
    main()

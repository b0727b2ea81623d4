"""Dagster's daemon, which ends with its supervisor: `python -m eval_pipeline.defs.running.daemon run …`."""

from eval_pipeline.core.system.supervision import end_with_supervisor
from eval_pipeline.defs.dagster_inside.servers import run_daemon

if __name__ == "__main__":
    end_with_supervisor()
    run_daemon()

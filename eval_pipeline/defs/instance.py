"""The Dagster instance below `EVAL_HOME`, and sweeping runs whose process is gone."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import dagster as dg
import psutil
from dagster._core.instance import InstanceRef

from eval_pipeline.core.home import Home
from eval_pipeline.defs.storage import ReusingSqliteStorage

HOST, PID, STARTED = "eval_pipeline/host", "eval_pipeline/pid", "eval_pipeline/process_started"
UNFINISHED = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.CANCELING]

SETTINGS = """\
# Written once by eval_pipeline; change it as you like.
telemetry:
  enabled: false
nux:
  enabled: false
concurrency:
  runs:
    max_concurrent_runs: 2
run_monitoring:
  enabled: true
"""


def prepare(home: Home) -> Path:
    """Makes DAGSTER_HOME with its settings where there is none, points the environment there, and returns it."""
    home.dagster.mkdir(parents=True, exist_ok=True)
    settings = home.dagster / "dagster.yaml"
    if not settings.exists():
        settings.write_text(SETTINGS)
    os.environ["DAGSTER_HOME"] = str(home.dagster)
    return home.dagster


def serve(home: Home, host: str, port: int) -> int:
    """Runs `dagster dev` on the home until it ends; returns its exit code."""
    prepare(home)
    workspace = Path(__file__).resolve().parents[2] / "workspace.yaml"
    target = ["-w", str(workspace)] if workspace.is_file() else ["-m", "eval_pipeline.definitions"]
    command = [sys.executable, "-m", "dagster", "dev", *target, "--host", host, "--port", str(port)]
    return subprocess.run(command, check=False).returncode


def open_instance(home: Home) -> dg.DagsterInstance:
    """The instance that the UI of this home shows too."""
    folder = str(prepare(home))
    storage = {
        "module": ReusingSqliteStorage.__module__,
        "class": "ReusingSqliteStorage",
        "config": {"base_dir": folder},
    }
    return dg.DagsterInstance.from_ref(InstanceRef.from_dir(folder, overrides={"storage": {"custom": storage}}))


def process_tags() -> dict[str, str]:
    """Tags by which `sweep` recognises the process of a run."""
    started = psutil.Process().create_time()
    return {HOST: socket.gethostname(), PID: str(os.getpid()), STARTED: f"{started:.2f}"}


def sweep(instance: dg.DagsterInstance) -> list[str]:
    """Marks runs as failed whose process on this machine is gone, and frees what they held; returns their ids."""
    swept = []
    for run in instance.get_runs(dg.RunsFilter(statuses=UNFINISHED)):
        if run.tags.get(HOST) == socket.gethostname() and not _alive(run.tags[PID], run.tags[STARTED]):
            instance.report_run_failed(run, "The process of this run is gone; the next run goes on where it was.")
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
            swept.append(run.run_id)
    return swept


def _alive(pid: str, started: str) -> bool:
    """Whether the process is there, and not another one that got its number."""
    try:
        return abs(psutil.Process(int(pid)).create_time() - float(started)) < 1
    except psutil.NoSuchProcess:
        return False

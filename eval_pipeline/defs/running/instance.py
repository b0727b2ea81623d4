"""The Dagster instance below `EVAL_HOME`, and cleaning up runs whose process is gone."""

import os
import socket
from pathlib import Path

import dagster as dg
import yaml

from eval_pipeline.core.home import Home
from eval_pipeline.core.system.processes import is_alive, mark, worldwide_mark
from eval_pipeline.defs.dagster_inside.running import InstanceRef
from eval_pipeline.defs.dagster_inside.storages import NoOpComputeLogManager
from eval_pipeline.defs.running.storage import ReusingSqliteStorage
from eval_pipeline.state.leases import process_name
from eval_pipeline.state.place import UNFINISHED, state_place
from eval_pipeline.store.durable import temporary_path
from eval_pipeline.workspace.runs import CANCELED, FAILED, end_dead_runs
from eval_pipeline.workspace.workspace import Workspace

PROCESS = ".dagster/eval_pipeline/process"
"""Tag with the process of a run.

It holds run id, host, process id and start time. It contains the run id because re-executions copy the tags of their
parent. The UI hides tags with this prefix.
"""
_LEASED = "leased"
"""Last word of the tag of a process that holds a lease in the database."""
_SWEPT = ".dagster/eval_pipeline/swept"
"""Tag of a run that was swept, with the name of its host until the record of its home has heard of it."""
_PROCESS_OF_0_1_0 = "eval_pipeline/process"

STORAGE_SETTINGS = frozenset({"storage", "run_storage", "event_log_storage", "schedule_storage"})

SETTINGS = """\
# Written once by eval_pipeline; change it as you like.
telemetry:
  enabled: false
nux:
  enabled: false
concurrency:
  runs:
    max_concurrent_runs: 2
  pools:
    default_limit: 1        # steps that ask one provider at once
run_monitoring:
  enabled: true
  free_slots_after_run_end_seconds: 30
retention:                # of ticks; `eval-pipeline prune` removes those of dates that go
  sensor:
    purge_after_days: {skipped: 1}
python_logs:
  managed_python_loggers: [eval_pipeline]
  python_log_level: INFO
"""


def prepare(home: Home) -> Path:
    """Creates DAGSTER_HOME with default settings if needed, sets the environment variable, and returns the folder.

    With a database, it is a folder within, whose settings are the user's with the storage in the database: the UI's
    processes read the file.
    """
    home.dagster.mkdir(parents=True, exist_ok=True)
    settings = home.dagster / "dagster.yaml"
    if not settings.exists():
        settings.write_text(SETTINGS)
    storage = state_place().dagster_storage
    folder = home.dagster if storage is None else _with_storage(home.dagster, *storage)
    os.environ["DAGSTER_HOME"] = str(folder)
    return folder


def _with_storage(folder: Path, module: str, name: str) -> Path:
    own = folder / "database"
    own.mkdir(exist_ok=True)
    settings = yaml.safe_load((folder / "dagster.yaml").read_text()) or {}
    if not STORAGE_SETTINGS & settings.keys():
        settings["storage"] = {"custom": {"module": module, "class": name, "config": {}}}
    text = f"# Written at each start from ../dagster.yaml; change that.\n{yaml.safe_dump(settings, sort_keys=False)}"
    target = own / "dagster.yaml"
    if not target.exists() or target.read_text() != text:
        temporary = temporary_path(target)
        temporary.write_text(text)
        temporary.replace(target)
    return own


def open_instance(home: Home) -> dg.DagsterInstance:
    """Returns the instance that this home's UI shows, too; the user's settings are kept.

    Output of runs in this process stays on the terminal. To copy it to files, Dagster would redirect the progress bars,
    too, and start four processes for each run.
    """
    folder = str(prepare(home))
    settings = yaml.safe_load((Path(folder) / "dagster.yaml").read_text()) or {}
    overrides: dict[str, object] = {}
    if not STORAGE_SETTINGS & settings.keys():
        overrides["storage"] = {"custom": _setting(ReusingSqliteStorage, base_dir=folder)}
    if "python_logs" not in settings:  # the home was made before this setting existed
        overrides["python_logs"] = yaml.safe_load(SETTINGS)["python_logs"]
    if "compute_logs" not in settings:
        overrides["compute_logs"] = _setting(NoOpComputeLogManager)
    return dg.DagsterInstance.from_ref(InstanceRef.from_dir(folder, overrides=overrides))


def process_tag(run_id: str) -> str:
    """Returns the tag value by which `sweep` recognises this process as the run's.

    With a database, this process holds a lease from now on, by which other hosts see that it is alive.
    """
    leases = state_place().leases()
    if leases is None:
        return f"{run_id} {socket.gethostname()} {mark()}"
    leases.process()
    return f"{run_id} {worldwide_mark()} {_LEASED}"


def tags_now(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dict[str, str]:
    """Returns the tags of a run, including those added since its launch, and tags it with this process.

    Every step calls this, and all steps of a run are in one process (`in_process_executor`).
    """
    mine = process_tag(run.run_id)
    if run.tags.get(PROCESS) == mine:
        return dict(run.tags)
    known = instance.get_run_by_id(run.run_id)
    tags = dict(known.tags if known else run.tags)
    if tags.get(PROCESS) != mine:
        instance.add_run_tags(run.run_id, {PROCESS: mine})
    return tags | {PROCESS: mine}


def sweep_home(home: Home, instance: dg.DagsterInstance) -> list[str]:
    """Like `sweep`; also updates the runs in the home's record."""
    swept = sweep(instance)
    later = _swept_elsewhere(instance) | _canceled(instance)
    workspace, shared = Workspace(home), state_place().leases() is not None
    for run_id in {*swept, *later}:
        run = instance.get_run_by_id(run_id)
        status = CANCELED if run is not None and run.status == dg.DagsterRunStatus.CANCELED else FAILED
        is_ours = end_dead_runs(workspace, [run_id], status)
        if run_id in later and (is_ours or not shared):
            instance.add_run_tags(run_id, {_SWEPT: "told"})
    return swept


def sweep(instance: dg.DagsterInstance) -> list[str]:
    """Ends runs whose process is gone, and frees their slots; returns their ids.

    One that somebody was about to cancel is canceled, others have failed.

    Of a process on another host this is known by its lease in the database, without one not at all. Runs for which it
    is unknown (not started, or with tags copied from another run) are left alone.
    """
    swept = []
    for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus(name) for name in UNFINISHED])):
        tag = run.tags.get(PROCESS, run.tags.get(_PROCESS_OF_0_1_0, ""))
        run_id, host, pid, started, leased = (tag.split(" ") + [""] * 5)[:5]
        if run_id == run.run_id and _is_gone(host, pid, started, leased=bool(leased)):
            if leased:
                instance.add_run_tags(run.run_id, {_SWEPT: host.split("@")[0]})
            if run.status == dg.DagsterRunStatus.CANCELING:
                instance.report_run_canceled(run)
            else:
                instance.report_run_failed(run, "The process of this run is gone; the next run goes on where it was.")
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
            swept.append(run.run_id)
    return swept


def _canceled(instance: dg.DagsterInstance) -> set[str]:
    """Returns the canceled runs whose process is gone, and of which the record has not heard.

    One whose process was killed could not tell it itself.
    """
    found = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.CANCELED]))
    tags = ((run, run.tags.get(PROCESS, "").split(" ") + [""] * 5) for run in found if _SWEPT not in run.tags)
    return {
        run.run_id
        for run, (run_id, host, pid, started, leased, *_) in tags
        if run_id == run.run_id and _is_gone(host, pid, started, leased=bool(leased))
    }


def _is_gone(host: str, pid: str, started: str, *, leased: bool) -> bool:
    if not leased:
        return host == socket.gethostname() and not is_alive(int(pid), started)
    # Another host may have this one's name: what the database knows of the lease decides.
    leases = state_place().leases()
    if leases is None:
        return False
    name = process_name(f"{host} {pid} {started}")
    leases.free_of_dead(name)
    return leases.end_expired(name)


def _swept_elsewhere(instance: dg.DagsterInstance) -> set[str]:
    """Returns the runs of hosts with this one's name that were swept, and whose home's record has not heard of it."""
    if state_place().leases() is None:
        return set()
    return {run.run_id for run in instance.get_runs(dg.RunsFilter(tags={_SWEPT: socket.gethostname()}))}


def _setting(kind: type, **config: str) -> dict[str, object]:
    """Returns a class in the form used in `dagster.yaml`."""
    return {"module": kind.__module__, "class": kind.__name__, "config": config}

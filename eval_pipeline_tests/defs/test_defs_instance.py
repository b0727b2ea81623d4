"""The instance: which process does a run, sweeping, the user's storage."""

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from uuid import uuid4

import dagster as dg
import pytest

from eval_pipeline.core.model import CallErrorKind, Partition
from eval_pipeline.core.supervision import SUPERVISOR
from eval_pipeline.defs.assets.partitions import DIMENSION
from eval_pipeline.defs.automation.notifications import UI_URL
from eval_pipeline.defs.running import launch, supervisor
from eval_pipeline.defs.running.instance import PROCESS, open_instance, process_tag, sweep
from eval_pipeline.defs.running.storage import ReusingEventLog
from eval_pipeline.providers.base import CallError
from eval_pipeline.web.token import NO_TOKEN
from eval_pipeline.workspace.runs import record_run, run_rows
from eval_pipeline.workspace.workspace import Silent
from eval_pipeline_tests.defs.runs import materialise
from eval_pipeline_tests.support import DAY, Lab, Puppet, python


def test_sweeping_ends_runs_whose_process_is_gone_and_no_others(instance: dg.DagsterInstance) -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as gone:
        pass
    names = ("alive", "dead", "reborn", "elsewhere", "none", "copied", "nonsense")
    ids = {name: str(uuid4()) for name in names}
    _, host, pid, started = process_tag("run").split(" ")
    tags = {
        "alive": process_tag(ids["alive"]),
        "dead": f"{ids['dead']} {host} {gone.pid} {started}",
        "reborn": f"{ids['reborn']} {host} {pid} 12345.00",  # the number was given to another process since
        "elsewhere": f"{ids['elsewhere']} not-{host} {gone.pid} {started}",
        "copied": f"{ids['dead']} {host} {gone.pid} {started}",  # a re-execution has its parent's tags
        "nonsense": ids["nonsense"],
    }
    for name, run_id in ids.items():
        own = {PROCESS: tags[name]} if name in tags else {}
        instance.add_run(dg.DagsterRun("job", run_id, tags=own, status=dg.DagsterRunStatus.STARTED))
    instance.event_log_storage.initialize_concurrency_limit_to_default("pool")
    instance.event_log_storage.set_concurrency_slots("pool", 2)
    instance.event_log_storage.claim_concurrency_slot("pool", ids["dead"], "step")
    instance.event_log_storage.claim_concurrency_slot("pool", ids["alive"], "step")
    assert set(sweep(instance)) == {ids["dead"], ids["reborn"]}
    status = {name: getattr(instance.get_run_by_id(found), "status", None) for name, found in ids.items()}
    failed, running = dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.STARTED
    assert status == {name: failed if name in {"dead", "reborn"} else running for name in names}
    held = instance.event_log_storage.get_concurrency_info("pool").claimed_slots
    assert {slot.run_id for slot in held} == {ids["alive"]}
    assert sweep(instance) == []


def test_every_run_says_which_process_does_it(small: Lab, instance: dg.DagsterInstance) -> None:
    parent = materialise(small, instance, only=["small/cases", "small/generations"])
    copied = instance.get_run_by_id(parent.run_id)
    assert copied is not None
    assert copied.tags[PROCESS] == process_tag(parent.run_id)
    again = instance.get_run_by_id(materialise(small, instance, launched=copied.tags).run_id)
    assert again is not None
    assert again.tags[PROCESS] == process_tag(again.run_id)
    list(launch.run(small.home, launch.Request([Partition("small", "puppet", DAY)], with_report=False), Silent()))
    newest = instance.get_runs(limit=1)[0]
    assert newest.tags[PROCESS] == process_tag(newest.run_id)


def test_the_ui_sweeps_before_it_starts(
    small: Lab,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_id = str(uuid4())
    _, host, pid, _ = process_tag(run_id).split(" ")
    tags = {PROCESS: f"{run_id} {host} {pid} 12345.00"}
    instance.add_run(dg.DagsterRun("job", run_id, tags=tags, status=dg.DagsterRunStatus.STARTED))
    for name in (UI_URL, SUPERVISOR, NO_TOKEN):
        monkeypatch.setenv(name, "")  # so that what is set here is taken back
        monkeypatch.delenv(name)
    monkeypatch.setattr(supervisor, "_code_servers", lambda _: nullcontext(tmp_path))
    monkeypatch.setattr(supervisor, "_keep", lambda children, _: said.extend(child.name for child in children))
    said = list[str]()
    supervisor.serve(small.home, "127.0.0.1", 3977)
    assert said == ["webserver", "daemon"]
    assert os.environ[UI_URL] == "http://127.0.0.1:3977"
    assert capsys.readouterr().out == f"open http://127.0.0.1:3977/?token={small.home.ui_token.read_text()}\n"
    swept = instance.get_run_by_id(run_id)
    assert swept is not None
    assert swept.status == dg.DagsterRunStatus.FAILURE


@pytest.mark.parametrize("older_home", [False, True])
def test_what_is_logged_of_calls_is_in_the_log_of_the_run(small: Lab, older_home: bool) -> None:
    if older_home:
        small.home.dagster.mkdir(parents=True)
        (small.home.dagster / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    later = CallError(CallErrorKind.RATE_LIMITED, "later")
    Puppet.answer = staticmethod(lambda call: later if call.turn_index else call.gold.oracle())
    with open_instance(small.home) as instance:
        instance.add_dynamic_partitions(DIMENSION, ["puppet"])
        result = materialise(small, instance)
        told = [entry.user_message for entry in instance.all_logs(result.run_id)]
    assert any(text.startswith("puppet: the limit of calls in flight falls from ") for text in told)


def test_the_users_storage_is_used(small: Lab, tmp_path: Path) -> None:
    with open_instance(small.home) as own:
        assert isinstance(own.event_log_storage, ReusingEventLog)
    settings = small.home.dagster / "dagster.yaml"
    settings.write_text(f"{settings.read_text()}storage:\n  sqlite:\n    base_dir: {tmp_path / 'elsewhere'}\n")
    with open_instance(small.home) as chosen:
        assert not isinstance(chosen.event_log_storage, ReusingEventLog)
        chosen.add_dynamic_partitions(DIMENSION, ["puppet"])
    assert (tmp_path / "elsewhere").is_dir()


@pytest.mark.always
def test_doctor_sweeps_runs_left_behind_and_loads_dagster_only_then(small: Lab) -> None:
    looking = "import sys; from eval_pipeline.cli import sweeping; print(sweeping.sweep(sweeping.find_home()), "
    looking += "'dagster' in sys.modules)"
    assert python(small, "-c", looking).stdout.split() == ["0", "False"], "there is no database"
    run_id = str(uuid4())
    with open_instance(small.home) as instance:
        assert python(small, "-c", looking).stdout.split() == ["0", "False"], "there are no runs"
        _, host, pid, _ = process_tag(run_id).split(" ")
        tags = {PROCESS: f"{run_id} {host} {pid} 12345.00"}
        instance.add_run(dg.DagsterRun("job", run_id, tags=tags, status=dg.DagsterRunStatus.STARTED))
    partition = Partition("small", "puppet", DAY)
    record_run(small.workspace(), partition, run_id)
    assert "runs: 1 marked as failed, whose process is gone" in small.cli("doctor").out
    assert "runs: none was left behind" in small.cli("doctor").out
    with open_instance(small.home) as instance:
        swept = instance.get_run_by_id(run_id)
        assert swept is not None
        assert swept.status == dg.DagsterRunStatus.FAILURE
    (row,) = run_rows(small.workspace(), partition)
    assert row["status"] == "failed"

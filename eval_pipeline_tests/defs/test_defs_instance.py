"""The instance: which process does a run, sweeping, the user's storage, and databases as Dagster makes them."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, nullcontext
from multiprocessing.synchronize import Barrier
from pathlib import Path
from uuid import uuid4

import dagster as dg
import pytest
import sqlalchemy
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.storage.noop_compute_log_manager import NoOpComputeLogManager
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._grpc.types import ListRepositoriesResponse
from dagster_shared.error import SerializableErrorInfo
from dagster_shared.serdes import serialize_value

from eval_pipeline.core.model import CallErrorKind, Partition
from eval_pipeline.core.system.supervision import SUPERVISOR
from eval_pipeline.defs.assets.partitions import DIMENSION
from eval_pipeline.defs.automation.notifications import UI_URL
from eval_pipeline.defs.running import launch, storage, supervisor
from eval_pipeline.defs.running.instance import PROCESS, open_instance, process_tag, sweep
from eval_pipeline.defs.running.storage import ReusingEventLog, ReusingSqliteStorage
from eval_pipeline.operations.runs.running import Request
from eval_pipeline.providers.base import CallError
from eval_pipeline.web.guard import NO_TOKEN
from eval_pipeline.workspace.runs import record_run, run_rows
from eval_pipeline.workspace.workspace import Silent
from eval_pipeline_tests.defs.runs import ASKING, materialise, run_of
from eval_pipeline_tests.forked import fork_server
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
    parent = materialise(small, instance, only=["small/cases"])
    copied = run_of(instance, parent.run_id)
    assert copied.tags[PROCESS] == process_tag(parent.run_id)
    again = run_of(instance, materialise(small, instance, launched=copied.tags, only=["small/cases"]).run_id)
    assert again.tags[PROCESS] == process_tag(again.run_id)
    launch.launch(small.workspace(), Request([Partition("small", "puppet", DAY)], with_report=False), Silent())
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
    assert run_of(instance, run_id).status == dg.DagsterRunStatus.FAILURE


@pytest.mark.parametrize("older_home", [False, True])
def test_what_is_logged_of_calls_is_in_the_log_of_the_run(small: Lab, older_home: bool) -> None:
    if older_home:
        small.home.dagster.mkdir(parents=True)
        (small.home.dagster / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    later = CallError(CallErrorKind.RATE_LIMITED, "later")
    Puppet.answer = staticmethod(lambda call: later if call.turn_index else call.gold.oracle())
    with open_instance(small.home) as instance:
        instance.add_dynamic_partitions(DIMENSION, ["puppet"])
        result = materialise(small, instance, only=ASKING)
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
    looking = "import sys; from eval_pipeline.cli.evaluating import sweeping; "
    looking += "print(sweeping.sweep(sweeping.find_home()), 'dagster' in sys.modules)"
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
        assert run_of(instance, run_id).status == dg.DagsterRunStatus.FAILURE
    (row,) = run_rows(small.workspace(), partition)
    assert row["status"] == "failed"


def store_together(folder: str, name: str, ready: Barrier) -> None:
    ready.wait(60)
    storage = ReusingSqliteStorage(folder)
    storage.event_log_storage.add_dynamic_partitions("processes", [name])


def contents(folder: Path) -> Iterator[tuple[str, object]]:
    """What decides how Dagster treats each database: tables and indexes, revision, migrations done, journal mode."""
    for path in sorted(folder.rglob("*.db")):
        with closing(sqlite3.connect(path)) as connection:
            schema = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2").fetchall()
            revision = connection.execute("SELECT version_num FROM alembic_version").fetchall()
            migrations = connection.execute(
                "SELECT name FROM secondary_indexes WHERE migration_completed IS NOT NULL ORDER BY 1"
            ).fetchall()
            mode = connection.execute("PRAGMA journal_mode").fetchall()
        yield path.relative_to(folder).as_posix(), (schema, revision, migrations, mode)


def test_new_databases_are_those_that_dagster_makes(tmp_path: Path) -> None:
    DagsterSqliteStorage(str(tmp_path / "theirs"))
    ReusingSqliteStorage(str(tmp_path / "ours")).dispose()
    ours, theirs = (dict(contents(tmp_path / name)) for name in ("ours", "theirs"))
    assert sorted(theirs) == ["history/runs.db", "history/runs/index.db", "schedules/schedules.db"]
    assert ours == theirs


def test_databases_of_runs_are_those_that_dagster_makes(tmp_path: Path) -> None:
    theirs = DagsterSqliteStorage(str(tmp_path / "theirs"))
    ours = ReusingSqliteStorage(str(tmp_path / "ours"))
    for one in (theirs, ours):
        assert one.event_log_storage.get_logs_for_run("some_run") == []
    ours.dispose()
    shard = "history/runs/some_run.db"
    assert dict(contents(tmp_path / "ours"))[shard] == dict(contents(tmp_path / "theirs"))[shard]


def test_dagsters_own_storage_reads_events_while_ours_is_open(small: Lab) -> None:
    with open_instance(small.home) as ours:
        run = dg.DagsterRun("job", str(uuid4()))
        ours.add_run(run)
        ours.report_run_failed(run, "told to fail")
        theirs = DagsterSqliteStorage(str(small.home.dagster))
        assert [r.run_id for r in theirs.run_storage.get_runs()] == [run.run_id]
        (event,) = theirs.event_log_storage.get_logs_for_run(run.run_id)
        assert event.message == "told to fail"


def test_databases_half_made_by_a_killed_process_are_completed(tmp_path: Path) -> None:
    for name in ("history/runs.db", "history/runs/index.db", "schedules/schedules.db"):
        path = tmp_path / "ours" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
    ReusingSqliteStorage(str(tmp_path / "ours")).dispose()
    DagsterSqliteStorage(str(tmp_path / "theirs"))
    assert dict(contents(tmp_path / "ours")) == dict(contents(tmp_path / "theirs"))


def test_processes_that_begin_a_home_together_do_not_disturb_each_other(tmp_path: Path) -> None:
    names = ["a", "b"]
    context = fork_server()
    ready = context.Barrier(len(names))
    processes = [context.Process(target=store_together, args=(str(tmp_path), name, ready)) for name in names]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    storage = ReusingSqliteStorage(str(tmp_path))
    assert sorted(storage.event_log_storage.get_dynamic_partitions("processes")) == names
    storage.dispose()


def test_what_runs_print_is_not_captured_unless_the_user_says_so(small: Lab, tmp_path: Path) -> None:
    with open_instance(small.home) as instance:
        assert isinstance(instance.compute_log_manager, NoOpComputeLogManager)
    kind = "module: dagster._core.storage.local_compute_log_manager\n  class: LocalComputeLogManager"
    settings = small.home.dagster / "dagster.yaml"
    settings.write_text(f"{settings.read_text()}compute_logs:\n  {kind}\n  config: {{base_dir: {tmp_path / 'logs'}}}\n")
    with open_instance(small.home) as instance:
        assert isinstance(instance.compute_log_manager, LocalComputeLogManager)


def test_nothing_of_the_databases_stays_open_after_a_run(small: Lab) -> None:
    pairs = [Partition("small", "puppet", DAY)]
    assert launch.launch(small.workspace(), Request(pairs), Silent()) == []
    assert (small.home.dagster / "history" / "runs.db").is_file()
    assert list(small.home.dagster.rglob("*-wal")) == []


def test_two_processes_may_add_the_same_partitions_at_the_same_time(tmp_path: Path) -> None:
    log = ReusingSqliteStorage(str(tmp_path)).event_log_storage
    (database,) = tmp_path.rglob("index.db")
    added = iter(["other"])

    def other_process(_: object, __: object, statement: str, *___: object) -> None:
        if statement.startswith("INSERT INTO dynamic_partitions"):
            for name in added:
                adding = "INSERT INTO dynamic_partitions (partitions_def_name, partition) VALUES ('versions', ?)"
                with closing(sqlite3.connect(database)) as connection, connection:
                    connection.execute(adding, [name])

    sqlalchemy.event.listen(log._engines["index"], "before_cursor_execute", other_process)
    log.add_dynamic_partitions("versions", ["own", "other"])
    assert sorted(log.get_dynamic_partitions("versions")) == ["other", "own"]


def test_few_databases_are_open_however_many_runs_there_are(tmp_path: Path) -> None:
    log = storage.ReusingEventLog(str(tmp_path))
    for number in range(storage.OPEN_RUNS + 3):
        for name in (f"run{number}", "run0"):  # an older one is opened again
            with log.run_connection(name) as connection:
                assert connection.execute(sqlalchemy.text("SELECT count(*) FROM event_logs")).scalar() == 0
        places = (os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd"))
        opened = {Path(place).name for place in places if place.startswith(str(tmp_path))}
        databases = {name for name in opened if name.endswith(".db")}
        assert len(databases - {"index.db"}) <= storage.OPEN_RUNS
        assert f"run{number}.db" in databases
    log.dispose()


def test_why_the_ui_is_empty_is_told_by_the_first_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    cause = SerializableErrorInfo("FileNotFoundError: no project\n", [], "FileNotFoundError")
    wrong = SerializableErrorInfo("DagsterUserCodeLoadError: …\n", [], "DagsterUserCodeLoadError", cause)
    answers = {"bad": wrong, "good": ListRepositoriesResponse([])}

    class Client:
        def __init__(self, *, socket: str, **_: object) -> None:
            self._answer = answers[socket]

        def list_repositories(self) -> str:
            return serialize_value(self._answer)

    monkeypatch.setattr(supervisor, "DagsterGrpcClient", Client)
    assert list(supervisor.load_errors([{"grpc_server": {"socket": name}} for name in answers])) == [
        "FileNotFoundError: no project"
    ]

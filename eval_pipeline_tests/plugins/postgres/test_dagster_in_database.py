"""Dagster's runs, events and pools in the database: hosts see each other's, and sweep what is gone."""

import os
import socket
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import dagster as dg
import psycopg
import pytest
from dagster._core.storage.tags import PARTITION_NAME_TAG
from dagster_postgres.utils import DagsterPostgresException
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url
from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2

from eval_pipeline.core.system import processes
from eval_pipeline.defs.assets.partitions import DIMENSION, EVAL_DATE
from eval_pipeline.defs.automation.sensors import retired
from eval_pipeline.defs.running.instance import PROCESS, open_instance, process_tag, sweep, sweep_home
from eval_pipeline.defs.running.pruning import ForgottenRuns, prune_history
from eval_pipeline.defs.running.removing import forget
from eval_pipeline.defs.running.supervisor import Daemon
from eval_pipeline.defs.running.told.telling import tell
from eval_pipeline.operations.upkeep.pruning import Remaining
from eval_pipeline.state.leases import process_name
from eval_pipeline.state.place import DATABASE_URL, state_place
from eval_pipeline.workspace.runs import record_run, run_rows
from eval_pipeline_plugins.postgres import dagster_storage
from eval_pipeline_plugins.postgres.address import DatabaseAddress, database_address
from eval_pipeline_plugins.postgres.dagster_storage import dagster_url
from eval_pipeline_plugins.postgres.leases import LEASE_S, PostgresLeases
from eval_pipeline_tests.remote import holding
from eval_pipeline_tests.servers import STATE_PASSWORD, StatePostgres
from eval_pipeline_tests.support import DAY, Lab

pytestmark = pytest.mark.services("postgres")
STARTED, FAILURE = dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.FAILURE
SUCCESS = dg.DagsterRunStatus.SUCCESS


@pytest.fixture(scope="module")
def like(state_server: StatePostgres, tmp_path_factory: pytest.TempPathFactory) -> str:
    """One in which Dagster has made its tables, which takes longer than most of these tests."""
    url = state_server.new_database()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DATABASE_URL, url)
        patch.setenv("DAGSTER_HOME", "")
        with open_instance(Lab.at(tmp_path_factory.mktemp("tables")).home):
            pass
    return url.rpartition("/")[2]


@pytest.fixture
def instance(database_url: str, small: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv(LEASE_S, "1")
    with open_instance(small.home) as found:
        yield found


def status(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRunStatus:
    run = instance.get_run_by_id(run_id)
    return run.status


def test_runs_are_in_the_database_and_nothing_shows_its_password(
    instance: dg.DagsterInstance, small: Lab, tmp_path: Path
) -> None:
    said = small.cli("run", "--no-report", "--eval-date", DAY.isoformat())
    assert said.code == 0, said.text
    assert tell(small.home) == 1
    runs = instance.get_runs()
    assert runs and all(run.status is dg.DagsterRunStatus.SUCCESS for run in runs)
    made = [
        instance.get_latest_materialization_event(dg.AssetKey(["small", name])) for name in ("cases", "generations")
    ]
    assert all(made)
    (cases,) = instance.fetch_materializations(dg.AssetKey(["small", "cases"]), limit=9).records
    assert made[1].asset_materialization.tags["dagster/input_event_pointer/small/cases"] == str(cases.storage_id)
    assert not list(small.home.dagster.rglob("*.db"))
    assert not small.home.journal.exists()
    assert STATE_PASSWORD not in instance.info_str() and STATE_PASSWORD not in repr(instance.get_ref())
    assert holding(tmp_path, STATE_PASSWORD) == []
    with dg.DagsterInstance.get() as others:  # what webserver, daemon and their code servers open
        assert {run.run_id for run in others.get_runs()} == {run.run_id for run in runs}
        assert STATE_PASSWORD not in others.info_str()


def test_a_run_of_another_host_is_swept_when_its_lease_has_ended_and_gives_back_its_slot(
    instance: dg.DagsterInstance, small: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = database_address()
    elsewhere = PostgresLeases(address, 1.0)
    ids = {name: str(uuid4()) for name in ("far", "gone", "unknown", "mine")}
    tags = {
        "far": f"{ids['far']} far-host 7 1234 leased",
        "gone": f"{ids['gone']} gone-host 7 1234 leased",
        "unknown": f"{ids['unknown']} other-host 7 1234",
        "mine": process_tag(ids["mine"]),
    }
    assert elsewhere.take(process_name("far-host 7 1234")) is not None
    assert elsewhere.take(process_name("gone-host 7 1234")) is not None
    for name, run_id in ids.items():
        instance.add_run(dg.DagsterRun("job", run_id, tags={PROCESS: tags[name]}, status=STARTED))
    log = instance.event_log_storage
    log.initialize_concurrency_limit_to_default("pool")
    log.set_concurrency_slots("pool", 1)
    log.claim_concurrency_slot("pool", ids["gone"], "step")
    assert sweep(instance) == []
    (gone,) = [lease for lease in elsewhere._held.values() if "gone" in lease.name]
    del elsewhere._held[gone.fence]  # as if the host had vanished: nobody renews it
    give_up = time.monotonic() + 20
    while not (swept := sweep(instance)):
        assert time.monotonic() < give_up
        time.sleep(0.05)
    assert swept == [ids["gone"]]
    assert [status(instance, ids[name]) for name in ids] == [STARTED, FAILURE, STARTED, STARTED]
    assert log.get_concurrency_info("pool").claimed_slots == []
    assert state_place().has_unfinished_runs(small.home)
    elsewhere.close()

    # When that host is back, the record of its home hears of it, once.
    partition = small.inputs().place
    record_run(small.workspace(), partition, ids["gone"])
    monkeypatch.setattr(socket, "gethostname", lambda: "gone-host")
    sweep_home(small.home, instance)
    assert [row["status"] for row in run_rows(small.workspace(), partition)] == ["failed"]


def _now_of_process_4194303(address: DatabaseAddress) -> None:
    """PostgresLeases of which the holder is a process that does not run here."""
    owner = "UPDATE eval_pipeline.leases SET owner = regexp_replace(owner, '^(\\S+) \\d+ ', '\\1 4194303 ')"
    with psycopg.connect(address.url) as connection:
        connection.execute(owner.encode())


def test_a_run_of_a_host_with_the_same_name_is_none_of_ours(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = database_address()
    run_id = str(uuid4())
    with monkeypatch.context() as there:
        there.setattr(processes, "machine", lambda: "elsewhere")
        elsewhere = PostgresLeases(address, 30.0)
        assert elsewhere.take(process_name(f"{processes.host()} 4194303 1")) is not None
        tag = f"{run_id} {processes.host()} 4194303 1 leased"
    _now_of_process_4194303(address)
    instance.add_run(dg.DagsterRun("job", run_id, tags={PROCESS: tag}, status=STARTED))
    assert sweep(instance) == []
    elsewhere.close()
    assert sweep(instance) == [run_id]


def test_a_run_of_this_machine_that_is_gone_is_swept_at_once(instance: dg.DagsterInstance, small: Lab) -> None:
    address = database_address()
    run_id, killed = str(uuid4()), PostgresLeases(address, 600.0)
    assert killed.take(process_name(f"{processes.host()} 4194303 1")) is not None
    _now_of_process_4194303(address)
    tag = f"{run_id} {processes.host()} 4194303 1 leased"
    instance.add_run(dg.DagsterRun("job", run_id, tags={PROCESS: tag}, status=STARTED))
    record_run(small.workspace(), small.inputs().place, run_id)
    assert sweep_home(small.home, instance) == [run_id]
    assert [row["status"] for row in run_rows(small.workspace(), small.inputs().place)] == ["failed"]
    killed.close()


def test_two_hosts_run_one_daemon(database_url: str) -> None:
    address = database_address()
    hosts = [Daemon("daemon", ["sleep", "600"], leases=PostgresLeases(address, 600.0)) for _ in range(2)]
    try:
        for host in hosts:
            host.look(0.0)
        assert [host.process is not None for host in hosts] == [True, False]
        assert hosts[1].refused
        hosts[0].stop()
        hosts[1].look(1.0)
        assert hosts[1].process is None, "it does not look all the time"
        hosts[1].look(6.0)
        assert hosts[1].process is not None and hosts[1].lease is not None
        hosts[1].lease.lost = True
        hosts[1].look(7.0)
        assert hosts[1].process is None
    finally:
        for host in hosts:
            host.stop()
            host.leases.close()


def test_a_purge_removes_a_model_versions_runs_and_their_bytes(
    instance: dg.DagsterInstance, small: Lab, database_url: str
) -> None:
    def files() -> list[str]:
        with psycopg.connect(database_url) as connection:
            query = "SELECT pg_relation_filepath(name) FROM unnest('{runs,run_tags,event_logs}'::text[]) name"
            return [path for (path,) in connection.execute(query)]

    for name in ("puppet", "another"):
        instance.add_run(dg.DagsterRun("job", str(uuid4()), tags={PARTITION_NAME_TAG: name}))
    instance.add_dynamic_partitions(DIMENSION, ["puppet", "another"])
    before = files()
    assert forget(small.home, "puppet", partition=True, history=True, dry_run=True) == 1
    assert forget(small.home, "puppet", partition=True, history=True, dry_run=False) == 1
    assert [run.tags[PARTITION_NAME_TAG] for run in instance.get_runs()] == ["another"]
    assert instance.get_dynamic_partitions(DIMENSION) == ["another"]
    assert not {*before} & {*files()}, "the tables are written anew"


def test_the_users_settings_are_kept_beside_the_storage(database_url: str, small: Lab) -> None:
    small.home.dagster.mkdir(parents=True)
    (small.home.dagster / "dagster.yaml").write_text(
        "telemetry: {enabled: false}\nconcurrency: {pools: {default_limit: 7}}\n"
    )
    with open_instance(small.home) as instance:
        assert instance.global_op_concurrency_default_limit == 7
    assert os.environ["DAGSTER_HOME"] == str(small.home.dagster / "database")


def test_a_database_that_is_away_is_waited_for(
    instance: dg.DagsterInstance, state_server: StatePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    def restart() -> None:
        state_server.kill()
        state_server.start()

    run = dg.DagsterRun("job", str(uuid4()), status=STARTED)
    instance.add_run(run)
    restart()
    assert instance.get_run_by_id(run.run_id) is not None
    instance.report_engine_event("still here", run)
    told = [entry.dagster_event.message for entry in instance.all_logs(run.run_id) if entry.dagster_event]
    assert any("still here" in (message or "") for message in told)

    # The first query of the UI after one is answered too.
    instance.optimize_for_webserver(1_500, 3_600, 20)
    instance.get_runs_count()
    with instance.run_storage.connect() as connection:
        assert connection.exec_driver_sql("SHOW statement_timeout").scalar() == "1500ms"
    restart()
    assert instance.get_runs_count() == 1
    assert not instance.all_logs(str(uuid4()))
    assert instance.all_instigator_state() == []

    # One that stays away is waited for once, though Dagster tries six times itself.
    slept = list[float]()
    clock = SimpleNamespace(monotonic=lambda: sum(slept), sleep=slept.append)
    monkeypatch.setattr(dagster_storage, "time", clock)
    monkeypatch.setattr(dagster_storage, "PATIENCE_S", 4.0)
    state_server.kill()
    try:
        with pytest.raises(DagsterPostgresException, match="too many retries"):
            instance.report_engine_event("lost", run)
        assert 4 <= sum(slept) < 20
    finally:
        state_server.start()
    instance.report_engine_event("back", run)


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("me:a%25b@127.0.0.1:5/evals?sslmode=disable&application_name=mine", "127.0.0.1 5 evals me a%b disable mine"),
        ("me@%2Frun%2Fpg:5/evals?application_name=a%20b", "/run/pg 5 evals me - - a b"),
        ("/evals?host=/run/pg&port=5&user=me&password=a+b%40c", "/run/pg 5 evals me a+b@c - eval-pipeline"),
        ("me@[::1]:5/my%20evals", "::1 5 my evals me - - eval-pipeline"),
    ],
)
def test_dagster_connects_where_we_do(rest: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATABASE_URL, f"postgresql://{rest}")
    address = database_address()
    _, used = PGDialect_psycopg2().create_connect_args(make_url(dagster_url(address)))
    names = ("host", "port", "dbname", "user", "password", "sslmode", "application_name")
    assert " ".join(str(used.get(name, "-")) for name in names) == expected
    ours = conninfo_to_dict(address.url)
    assert {name: used.get(name) for name in names[:-1]} == {name: ours.get(name) for name in names[:-1]}
    assert used["gssencmode"] == "disable" and used["tcp_user_timeout"] == "25000"


def test_a_pruning_removes_old_runs_with_their_rows(instance: dg.DagsterInstance, small: Lab) -> None:
    tags = [{EVAL_DATE: day, PARTITION_NAME_TAG: "puppet"} for day in ("2020-01-01", "2026-01-01")]
    old, new = (dg.DagsterRun("suite_small", str(uuid4()), status=SUCCESS, tags=own) for own in tags)
    for run in (old, new):
        instance.add_run(run)
        instance.report_engine_event("a line", run)
    left = Remaining(frozenset({"small"}), frozenset({("puppet", date(2026, 1, 1))}), date(2026, 1, 1))
    assert prune_history(small.home, left, dry_run=True) == ForgottenRuns(1, 2)
    assert prune_history(small.home, left, dry_run=False) == ForgottenRuns(1, 2)
    assert [run.run_id for run in instance.get_runs()] == [new.run_id]
    assert not instance.all_logs(old.run_id)
    assert instance.all_logs(new.run_id)


def test_what_other_homes_may_have_stays(instance: dg.DagsterInstance, small: Lab) -> None:
    instance.add_dynamic_partitions(DIMENSION, ["theirs", "puppet"])
    small.evaluate()
    tags = {EVAL_DATE: "2020-01-01", PARTITION_NAME_TAG: "puppet"}
    instance.add_run(dg.DagsterRun("suite_small", str(uuid4()), status=SUCCESS, tags=tags))
    assert "0 runs of Dagster" in small.cli("prune", "--dry-run").out
    assert "1 run of Dagster" in small.cli("prune", "--dry-run", "--only-home").out
    assert retired(instance, small.workspace()) == []
    small.versions({"name": "next", "provider": "puppet"})
    assert retired(instance, small.workspace()) == ["puppet"]

"""Dagster's databases, made and kept open in our way, are those that Dagster makes."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.synchronize import Barrier
from pathlib import Path
from uuid import uuid4

import dagster as dg
import sqlalchemy
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.storage.noop_compute_log_manager import NoOpComputeLogManager
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage

from eval_pipeline.core.model import Partition
from eval_pipeline.defs.running import launch
from eval_pipeline.defs.running.instance import open_instance
from eval_pipeline.defs.running.storage import ReusingSqliteStorage
from eval_pipeline.workspace.workspace import Silent
from eval_pipeline_tests.forked import fork_server
from eval_pipeline_tests.support import DAY, Lab


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
    for storage in (theirs, ours):
        assert storage.event_log_storage.get_logs_for_run("some_run") == []
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
    names = ["a", "b", "c"]
    context = fork_server()
    ready = context.Barrier(len(names))
    processes = [context.Process(target=store_together, args=(str(tmp_path), name, ready)) for name in names]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
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
    assert not [found.errors for found in launch.run(small.home, launch.Request(pairs), Silent()) if found.errors]
    assert (small.home.dagster / "history" / "runs.db").is_file()
    assert list(small.home.dagster.rglob("*-wal")) == []


def test_two_processes_may_add_the_same_partitions_at_the_same_time(tmp_path: Path) -> None:
    log = ReusingSqliteStorage(str(tmp_path)).event_log_storage
    (database,) = tmp_path.rglob("index.db")
    added = iter(["other"])

    def other_process(_: object, __: object, statement: str, *___: object) -> None:
        if statement.startswith("INSERT INTO dynamic_partitions"):
            for name in added:
                with closing(sqlite3.connect(database)) as connection, connection:
                    connection.execute(
                        "INSERT INTO dynamic_partitions (partitions_def_name, partition) VALUES ('versions', ?)", [name]
                    )

    sqlalchemy.event.listen(log._engines["index"], "before_cursor_execute", other_process)
    log.add_dynamic_partitions("versions", ["own", "other"])
    assert sorted(log.get_dynamic_partitions("versions")) == ["other", "own"]

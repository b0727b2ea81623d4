"""A home in a bucket: two hosts with one database and one bucket do what one does with a folder, removing included."""

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from eval_pipeline.chain import runner
from eval_pipeline.chain.evaluation import chain_of, comparing
from eval_pipeline.core.errors import LockedError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.core.system.bucket_address import BucketAddress
from eval_pipeline.state.place import DATABASE_URL
from eval_pipeline.store.tables import all_tables
from eval_pipeline.view.page import Bench
from eval_pipeline.workspace import runs
from eval_pipeline.workspace.homes.places import place_of
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.noting.commands import Command, ended, lag, left_behind
from eval_pipeline.workspace.tabled.track_tables import further_tables
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_plugins.bucket import bucket as port
from eval_pipeline_plugins.bucket import place as bucket_place
from eval_pipeline_plugins.postgres import leases
from eval_pipeline_tests.fakes.anthropic_server import AnthropicServer
from eval_pipeline_tests.fakes.bucket_server import SECRET, BucketServer
from eval_pipeline_tests.forked import forked
from eval_pipeline_tests.plugins.bucket.hosts import Hosts
from eval_pipeline_tests.remote import MODULE, RUN, VERSION, answers, charged, contents, holding, prepare
from eval_pipeline_tests.servers import STATE_PASSWORD
from eval_pipeline_tests.support import DAY, Lab, case

OF_ONE_CALL = {"finqa_turns", "generations", "recovery_attempts", "runs", "statistics", "turn_results"}
"""Tables of the record with times and request ids, or with what is made from them."""
pytestmark = pytest.mark.services("postgres", "bucket")


def test_a_second_host_finds_what_the_first_has_paid_for(
    hosts: Hosts, server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AnthropicServer(answers) as model:
        prepare(Lab.at(tmp_path), model, conversations=1)
        ran = hosts.run("a", *RUN, "--paths")
        assert ran.code == 0, ran.text
        assert f'store:    {hosts.address} (read it with eval-pipeline query "SELECT …"' in ran.out
        paid = charged(model)
        assert paid and set(paid.values()) == {1}
        kept = server.objects(hosts.address.bucket)
        again = hosts.run("b", *RUN)
        assert again.code == 0, again.text
        assert charged(model) == paid
        written = {name for name, data in server.objects(hosts.address.bucket).items() if kept.get(name) != data}
        assert {name.split("/")[3] for name in written if "/record/" in name} <= {"runs"}
        at_b = hosts.use("b")
        asked = at_b.cli("query", "SELECT count(*) AS n FROM turn_results", "--format", "csv")
        assert asked.out.split() == ["n", "4"], asked.text
        monkeypatch.setattr(port, "PATIENCE_S", 0.1)
        server.failing = "503 Service Unavailable"
        away = at_b.cli("query", "SELECT 1")
        server.failing = ""
        assert away.code == 2
        assert away.err.count("\n") == 1 and f"the bucket of {hosts.address} cannot be used" in away.err
    assert holding(tmp_path, STATE_PASSWORD) == holding(tmp_path, SECRET) == []
    assert {path.stat().st_mode & 0o777 for path in (hosts.folder / "b").iterdir()} == {0o700}


@pytest.mark.parametrize(("names", "conversations"), [("ab", 1), pytest.param("abc", 12, marks=pytest.mark.soak)])
def test_hosts_that_evaluate_the_same_at_once_both_end_well(
    hosts: Hosts, tmp_path: Path, names: str, conversations: int
) -> None:
    with AnthropicServer(answers) as model:
        prepare(Lab.at(tmp_path), model, conversations)
        running = []
        for name in names:
            hosts.use(name)
            running.append(forked(f"{MODULE}:main", RUN, {}, tmp_path / f"{name}.log"))
        for process in running:
            assert process.wait(300) == 0, process.log.read_text()
        assert set(charged(model).values()) == {1}
    told = "SELECT status, count(*) AS runs, sum(calls) AS calls FROM runs GROUP BY ALL"
    asked = hosts.run("d", "query", told, "--format", "csv")
    assert asked.out.split() == ["status,runs,calls", f"complete,{len(names)},{charged(model).total()}"], asked.text


@pytest.mark.soak
def test_it_has_what_a_folder_has(hosts: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with AnthropicServer(answers) as model:
        embedded = prepare(Lab.at(tmp_path), model, conversations=3)
        assert hosts.run("a", *RUN).code == 0
        at_b = hosts.use("b")
        assert at_b.cli("query", "SELECT 1").code == 0
        found = hashes(at_b)
        in_a_folder(embedded, monkeypatch)
        assert embedded.cli(*RUN).code == 0
    assert contents(at_b) == contents(embedded)
    assert found == hashes(embedded)


@pytest.mark.soak
def test_commands_work_on_it(hosts: Hosts, server: BucketServer, tmp_path: Path) -> None:
    with AnthropicServer(answers) as model:
        prepare(Lab.at(tmp_path), model, conversations=3)
        assert hosts.run("a", *RUN).code == 0
        before = contents(hosts.use("a"))
        names = server.objects(hosts.address.bucket)
        wrong = [
            next(name for name in names if f"/{what}/" in name)
            for what in ("record/turn_results", "record/generations", "catalog/parts/metrics")
        ]
        for name in wrong:
            server.flip(hosts.address.bucket, name)
        for host in ("a", "b"):
            said = hosts.run(host, "doctor")
            assert said.code == 1
            assert "of several writers at once, one wins" in said.out.replace("\n", " ")
            assert all(f"s3://{hosts.address.bucket}/{name}" in said.out.replace("\n", "") for name in wrong), said.text
        hosts.run("b", "doctor", "--repair")
        for host in ("a", "b"):
            said = hosts.run(host, "doctor")
            failed = [line.partition(":")[0] for line in said.out.splitlines() if line.startswith("FAIL")]
            assert failed == ["FAIL model of claude"], said.text  # which the server only answers for
        assert hosts.run("a", "query", "SELECT 1").code == 0
        assert contents(hosts.use("a")) == before
        assert set(charged(model).values()) == {1}
        made = hosts.run("b", "report", "--suite", "small")
        assert made.code == 0 and str(tmp_path / "b") in made.out, made.text
        with Bench.of(hosts.use("b").home) as bench:
            with bench.published.look() as look:
                assert look.row("SELECT count(*) AS n FROM turn_results") == {"n": 12}
            assert hosts.run("a", *RUN[:-1], "2026-03-08").code == 0
            bench.published._refreshed_at = -inf
            with bench.published.look() as look:
                assert look.row("SELECT count(*) AS n FROM turn_results") == {"n": 24}
        assert hosts.run("a", "prune", "--keep", "1").code == 0
        asked = hosts.run("b", "query", "SELECT DISTINCT eval_date FROM turn_results", "--format", "csv")
        assert asked.out.split() == ["eval_date", "2026-03-08"], asked.text


@pytest.mark.parametrize("what", ["publishing", "comparing"])
def test_homes_in_two_buckets_do_not_wait_for_each_other(
    what: str, hosts: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_place, "LOCK_S", 0)
    monkeypatch.setattr(runs, "inf", 0)
    Lab.at(tmp_path).suite("small", [case("c", ("50", 50.0))])
    home = hosts.use("a").home
    twin = replace(home, root=tmp_path / "b")
    other = replace(home, root=tmp_path / "c", bucket=BucketAddress("elsewhere", "team/evals"))

    def turn(of: Home) -> AbstractContextManager[object]:
        if what == "publishing":
            return place_of(of).publishing_in_turn()
        stage = next(stage for stage in comparing(chain_of(None)) if stage.whole_suite)
        return runner._in_turn(stage, Inputs(Workspace(of), "small"))

    with turn(home):
        with turn(other):
            pass
        with pytest.raises(LockedError), turn(twin):
            pass


def test_another_host_knows_what_a_dead_process_left_unpublished(hosts: Hosts, server: BucketServer) -> None:
    at_a, at_b = hosts.use("a").home, hosts.use("b").home
    places = [Partition("small", name, DAY) for name in ("one", "two")]
    note, other = Command(at_a, "run"), Command(at_a, "dagster")
    other.note({"unpublished": ["small", "one", DAY.isoformat()]})
    other.note({"published": True})
    other.note({"compared": "small"})
    other.settle()
    note.note_run("r", places)
    for place in places:
        note.note({"unpublished": ["small", place.model_version, DAY.isoformat()]})
    with left_behind(at_b) as (found, (living,)):
        assert (found, living.unpublished) == ([], places), "its process is at work"
    known = leases.open_leases()
    known.release(known.process())  # as if it had died, and its lease expired
    assert "a run ended before it published small · one · 2026-03-01 and 1 more" in lag(at_b) == lag(at_a)
    with left_behind(at_b) as ((left,), _):
        assert left.noted.unpublished == places
        left.add({"run_ended": "r", "status": "failed"})
        left.settle()
    with left_behind(at_a) as found:
        assert found == ([], [])
    ((_, told, forget),) = ended(at_a)
    assert [entry["status"] for entry in told.entries if "run_ended" in entry] == ["failed"]
    forget()
    assert server.objects(hosts.address.bucket) == {}


def in_a_folder(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATABASE_URL)
    for name, value in (lab.environment | {"DAGSTER_HOME": str(lab.home.dagster)}).items():
        monkeypatch.setenv(name, value)


def hashes(lab: Lab) -> dict[str, str]:
    """The hash of the rows of each file of the record, but for what differs from call to call."""
    record, found = lab.workspace().record, {}
    for table in all_tables(further_tables()):
        for source in table.record_tables():
            for key in record.partitions(source):
                header = record.header(source, key)
                found[record.path(source, key).relative_to(record.root).as_posix()] = header.content_hash
    return {name: content for name, content in found.items() if name.partition("/")[0] not in OF_ONE_CALL}


@pytest.fixture
def model(tmp_path: Path) -> Iterator[AnthropicServer]:
    with AnthropicServer(answers) as found:
        prepare(Lab.at(tmp_path), found, conversations=1)
        yield found


def copies(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("part.parquet") if f"model_version={VERSION}" in path.parts]


@pytest.mark.soak
def test_another_host_removes_every_response(
    hosts: Hosts, server: BucketServer, model: AnthropicServer, tmp_path: Path
) -> None:
    ran = hosts.run("a", *RUN)
    assert ran.code == 0, ran.text
    evaluation = f"suite=small/model_version={VERSION}/eval_date=2026-03-01"
    stray = {
        f"team/evals/record/of_a_package/{evaluation}/part.parquet": b"of a table that nobody knows",
        f"team/evals/parts/evidence/{evaluation}/a.jsonl": b"of a run that was killed",
        "team/evals/parts/evidence/suite=small/model_version=other/eval_date=2026-03-01/a.jsonl": b"stays",
    }
    for name, data in stray.items():
        server.client.put_object(Bucket=hosts.address.bucket, Key=name, Body=data)
    *gone, stays = stray
    told = hosts.run("b", "remove", VERSION, "--purge", "--dry-run")
    assert told.code == 0 and f"small · {VERSION}" in told.out, told.text
    assert {*stray} <= server.objects(hosts.address.bucket).keys()
    said = hosts.run("b", "remove", VERSION, "--purge", "--yes")
    assert said.code == 0, said.text
    left = server.objects(hosts.address.bucket)
    assert not [name for name in left if f"model_version={VERSION}/" in name]
    assert stays in left and not {*gone} & left.keys()
    assert not [name for name in left if "/catalog/parts/turn_results/" in name]
    assert not copies(tmp_path / "b")
    assert hosts.run("b", "query", "SELECT count(*) FROM turn_results", "--format", "csv").out.split()[-1] == "0"

    # The other host drops its copies when it publishes next, but for those that somebody may just read.
    assert copies(tmp_path / "a")
    an_hour_ago = time.time() - 3600
    for path in copies(tmp_path / "a"):
        os.utime(path, (an_hour_ago, an_hour_ago))
    assert hosts.run("a", "publish").code == 0
    assert not copies(tmp_path / "a")
    asked = hosts.run("a", "query", "SELECT count(*) FROM turn_results", "--format", "csv")
    assert asked.out.split()[-1] == "0", asked.text

    paid = charged(model)
    assert hosts.run("a", *RUN).code == 0
    assert charged(model).total() == 2 * paid.total(), "a purged response was found again"

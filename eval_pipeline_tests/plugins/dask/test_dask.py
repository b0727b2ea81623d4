"""Dask behind the port: a real scheduler and a real worker on this machine, shared by these tests."""

import asyncio
import gc
import json
import os
import pkgutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.chain.evaluation import stage_of
from eval_pipeline.chain.runner import run_chain
from eval_pipeline.chain.shards import TURNS_A_SHARD
from eval_pipeline.core.errors import EvalError, UsageError
from eval_pipeline.operations.upkeep import doctor
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import GENERATIONS
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.shards.cluster import ADDRESS, Cluster
from eval_pipeline.workspace.shards.workers import threads
from eval_pipeline_plugins.dask.address import Address
from eval_pipeline_plugins.dask.cluster import DaskCluster, _wait_for_workers, dask_cluster
from eval_pipeline_tests.chain.in_this_process import compared
from eval_pipeline_tests.plugins.dask.dask_services import Services, waited
from eval_pipeline_tests.plugins.dask.test_shipped_suites import SUITES, same
from eval_pipeline_tests.plugins.dask.work import sleep, with_threads
from eval_pipeline_tests.support import ROOT, Lab, Puppet
from eval_pipeline_tests.tracks.sql.helpers import answer, shop_lab

pytestmark = pytest.mark.services("dask")


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    found = Services(tmp_path_factory.mktemp("dask"))
    try:
        found.worker()
        yield found
    finally:
        found.end()


@pytest.fixture(scope="module")
def cluster(services: Services) -> Iterator[Cluster]:
    with dask_cluster(Address(services.url)) as opened:
        yield opened


def tasks(notes: Path, count: int, seconds: float = 0.01, **more: Any) -> list[dict[str, Any]]:
    return [{"name": f"t{place}", "notes": str(notes), "seconds": seconds, **more} for place in range(count)]


def began(notes: Path) -> int:
    return len(list(notes.glob("*.began.*")))


def test_results_come_in_order(cluster: Cluster, tmp_path: Path) -> None:
    found = list(cluster.map(sleep, tasks(tmp_path, 5)))
    assert [told["name"] for told in found] == ["t0", "t1", "t2", "t3", "t4"]
    assert {told["pid"] for told in found}.isdisjoint({os.getpid()})
    assert began(tmp_path) == 5


def test_a_worker_knows_how_many_threads_it_has(cluster: Cluster) -> None:
    assert list(cluster.map(with_threads, [{"threads": 1}, {"threads": 3}])) == [{"threads": 1}, {"threads": 3}]
    assert [told["threads"] for told in cluster.everywhere(dict)] == [1]
    assert threads() == 1  # this process talks to a cluster, and is no worker


def test_nothing_listens_beyond_this_machine(services: Services, cluster: Cluster) -> None:
    """Nor does the server that tells about a worker by HTTP, which `--no-dashboard` does not switch off."""
    assert [place for place in services.listening() if not ip_address(place).is_loopback] == []
    assert len(services.listening()) >= 4


def test_an_error_of_the_work_is_its_sentence(cluster: Cluster, tmp_path: Path) -> None:
    given = tasks(tmp_path, 4)
    given[1]["fails"] = True
    with pytest.raises(UsageError, match=r"^t1 fails$"):
        list(cluster.map(sleep, given))
    assert not list(tmp_path.glob("t[23].*"))  # nothing further was begun


def test_a_call_that_nobody_waits_for_any_more_is_dropped(
    cluster: Cluster, tmp_path: Path, recwarn: pytest.WarningsRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    async def given_up() -> None:
        asking = asyncio.gather(*(cluster.call(sleep, task) for task in tasks(tmp_path, 3, 2.0)))
        await asyncio.to_thread(waited, lambda: began(tmp_path))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(given_up())
    gc.collect()
    assert not [str(one.message) for one in recwarn if one.category is RuntimeWarning]
    (tmp_path / "later").mkdir()
    list(cluster.map(sleep, tasks(tmp_path / "later", 1)))  # it waits for what is before it
    assert began(tmp_path) == 1
    assert "Error in callback" not in caplog.text


def test_a_killed_worker_costs_the_shard_that_it_had(cluster: Cluster, tmp_path: Path) -> None:
    given = tasks(tmp_path, 4, slow_once=1.0, seconds=0.05)
    found = cluster.map(sleep, given)
    assert next(found)["name"] == "t0"
    pid = waited(lambda: next((int(path.read_text() or 0) for path in tmp_path.glob("t1.began.*")), 0))
    os.kill(pid, signal.SIGKILL)
    assert [told["name"] for told in found] == ["t1", "t2", "t3"]
    assert len(list(tmp_path.glob("t0.began.*"))) == 1
    assert len(list(tmp_path.glob("t1.began.*"))) == 2  # the nanny has started another process


_DRIVER = """
import sys
from pathlib import Path
from eval_pipeline_plugins.dask.address import Address
from eval_pipeline_plugins.dask.cluster import dask_cluster
from eval_pipeline_tests.plugins.dask.test_dask import tasks
from eval_pipeline_tests.chain.in_this_process import compared
from eval_pipeline_tests.plugins.dask.work import sleep
with dask_cluster(Address(sys.argv[1])) as cluster:
    list(cluster.map(sleep, tasks(Path(sys.argv[2]), 20, 0.4)))
"""


def test_after_the_driver_no_shard_starts(services: Services, tmp_path: Path) -> None:
    driver = subprocess.Popen([sys.executable, "-c", _DRIVER, services.url, str(tmp_path)], cwd=ROOT)
    waited(lambda: began(tmp_path) >= 2)
    driver.kill()
    driver.wait()
    at_most = began(tmp_path) + 1  # one may have been on its way
    time.sleep(1.5)
    assert began(tmp_path) <= at_most


def test_an_evaluation_on_workers_has_the_same_record(
    services: Services, small: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared(small, run=RunContext("run"))
    whole = small.record_file("evidence").read_bytes()
    small.record_file("evidence").unlink()
    monkeypatch.setenv(ADDRESS, services.url)
    monkeypatch.setenv(TURNS_A_SHARD, "1")
    told = small.stage("evidence", small.inputs(run=RunContext("run"))).facts
    assert told["shards"] == 2
    assert small.record_file("evidence").read_bytes() == whole
    assert not small.home.parts.exists()


def test_queries_run_on_workers_while_this_process_asks(
    services: Services, lab: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop_lab(lab).versions({"name": "puppet", "provider": "puppet"})
    Puppet.answer = staticmethod(lambda call: answer("SELECT name FROM customers WHERE city = 'Oslo'"))
    monkeypatch.setenv(ADDRESS, services.url)
    inputs = lab.inputs("shop")
    run_chain([stage_of(inputs.track, name) for name in ("raw_dataset", "cases", "generations")], inputs)
    rows = lab.workspace().record.read(GENERATIONS, RecordKey.of(inputs.place), ["outcome", "result"]).to_pylist()
    assert [row["outcome"] for row in rows] == ["ran"] * 4
    assert json.loads(rows[0]["result"])["rows"] == [["Ada"], ["Cy"]]


@pytest.mark.parametrize("suite", [suite for suite in SUITES if suite != "sql_sample"])  # queries: see above
def test_the_first_case_of_a_shipped_suite(
    suite: str, services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same(services, tmp_path, suite, "simulated-weak", 1, monkeypatch)


def test_doctor_lists_workers(services: Services, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESS, services.url)
    (found,) = doctor._cluster(lab.workspace())
    assert found.topic.startswith("worker ")
    assert ("bwrap" in found.text or "sandlock" in found.text) is found.fine
    monkeypatch.delenv(ADDRESS)
    assert list(doctor._cluster(lab.workspace())) == []


def test_nobody_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eval_pipeline_plugins.dask.cluster._CONNECT_S", 0.3)
    with (
        ExitStack() as stack,
        pytest.raises(UsageError, match=r"no scheduler answers at EVAL_CLUSTER=tcp://127\.0\.0\.1:9"),
    ):
        stack.enter_context(dask_cluster(Address("tcp://127.0.0.1:9")))


class Severed:
    """What Dask's client and futures do between the end of the scheduler and its being noticed."""

    status = "running"

    def __init__(self, raised: BaseException) -> None:
        self._raised = raised

    def submit(self, *_: Any, **__: Any) -> Any:
        raise self._raised

    def result(self, **_: Any) -> Any:
        raise self._raised

    nthreads = result


def severed(*, at: str, raised: BaseException, status: str = "finished", client: str = "running") -> None:
    broken = Severed(raised)
    broken.status = client
    cluster = DaskCluster(broken, Address("tcp://127.0.0.1:9"))
    if at == "call":
        asyncio.run(cluster.call(sleep, {}))
    elif at == "map":
        list(cluster.map(sleep, [{}]))
    else:
        future = Severed(raised)
        future.status = status
        cluster._result(future)


@pytest.mark.parametrize("at", ["call", "map", "result"])
@pytest.mark.parametrize("name", ["distributed.comm.core:CommClosedError", "distributed.client:ClosedClientError"])
def test_a_scheduler_that_ends_between_two_looks_is_a_sentence(at: str, name: str) -> None:
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    raised = pkgutil.resolve_name(name)("closed")
    with pytest.raises(EvalError, match=r"^the scheduler at tcp://127\.0\.0\.1:9 is gone; what is computed is kept"):
        severed(at=at, raised=raised)


@pytest.mark.parametrize(
    ("at", "who"), [("call", "the scheduler at"), ("map", "the scheduler at"), ("result", "a worker of")]
)
def test_who_does_not_answer_in_time_is_not_called_gone(at: str, who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    monkeypatch.setattr("eval_pipeline_plugins.dask.cluster._MUTE_S", -1.0)  # the worker had its time
    with pytest.raises(EvalError, match=rf"^{who} tcp://127\.0\.0\.1:9 did not answer in time \(30 s\); what is"):
        severed(at=at, raised=TimeoutError("30 s"))
    with pytest.raises(EvalError, match=r"^the scheduler at tcp://127\.0\.0\.1:9 is gone"):
        severed(at=at, raised=TimeoutError("30 s"), client="closed")


@pytest.mark.parametrize(("status", "told"), [("running", "has no workers"), ("closed", "ended while its workers")])
def test_a_scheduler_that_ends_before_a_worker_comes_is_told(status: str, told: str) -> None:
    class Waiting:
        def wait_for_workers(self, *_: Any, **__: Any) -> None:
            raise TimeoutError

    client: Any = Waiting()
    client.status = status
    with pytest.raises(UsageError, match=told):
        _wait_for_workers(client, Address("tcp://127.0.0.1:9"))


def test_an_error_of_the_work_about_a_file_is_its_own() -> None:
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    with pytest.raises(FileNotFoundError, match="cases"):
        severed(at="result", raised=FileNotFoundError("cases"), status="error")

"""Dask behind the port: a real scheduler and a real worker on this machine, shared by these tests."""

import asyncio
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from eval_pipeline.chain.evaluation import stage_of
from eval_pipeline.chain.runner import run_chain
from eval_pipeline.chain.shards import TURNS_A_SHARD
from eval_pipeline.cluster.address import ADDRESS, Address
from eval_pipeline.cluster.dask import dask_cluster
from eval_pipeline.cluster.port import Cluster
from eval_pipeline.core.errors import UsageError
from eval_pipeline.operations import doctor
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import GENERATIONS
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline_tests.cluster.test_shards import compared
from eval_pipeline_tests.cluster.work import sleep
from eval_pipeline_tests.support import Lab, Puppet
from eval_pipeline_tests.tracks.sql.helpers import answer, shop_lab

pytestmark = pytest.mark.services("dask")
ROOT = Path(__file__).parents[2]
_START_S = 120.0


def waited(found: Callable[[], Any], seconds: float = _START_S) -> Any:
    end = time.monotonic() + seconds
    while not (it := found()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
    return it


class Services:
    """A scheduler, and workers of one process and thread each; `security`: their options for certificates."""

    def __init__(self, folder: Path, security: Mapping[str, Sequence[str]] | None = None) -> None:
        self.folder, self.file, self.security = folder, folder / "scheduler.json", security or {}
        self.children: list[subprocess.Popen[bytes]] = []
        place = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self.file))
        self._start("scheduler", *place, *self.security.get("scheduler", ()))
        waited(self.file.exists)
        self.url = str(json.loads(self.file.read_text())["address"])

    def worker(self) -> subprocess.Popen[bytes]:
        return self._start(
            "worker", self.url, "--host", "127.0.0.1", "--nworkers", "1", "--nthreads", "1",
            "--local-directory", str(self.folder), *self.security.get("worker", ()),
        )  # fmt: skip

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{arguments[0]}.log").open("ab")
        kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        command = [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:], "--no-dashboard"]
        environment = kept | {"PYTHONPATH": str(ROOT)}
        child = subprocess.Popen(command, cwd=self.folder, env=environment, stdout=log, stderr=log)
        self.children.append(child)
        return child

    def end(self) -> None:
        for child in reversed(self.children):
            family = [*psutil.Process(child.pid).children(recursive=True)] if child.poll() is None else []
            child.kill()
            child.wait()
            for one in family:
                if one.is_running():
                    one.kill()


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


def test_an_error_of_the_work_is_its_sentence(cluster: Cluster, tmp_path: Path) -> None:
    given = tasks(tmp_path, 4)
    given[1]["fails"] = True
    with pytest.raises(UsageError, match=r"^t1 fails$"):
        list(cluster.map(sleep, given))
    assert not list(tmp_path.glob("t3.*"))  # nothing further was begun


def test_a_call_that_nobody_waits_for_any_more_is_dropped(
    cluster: Cluster, tmp_path: Path, recwarn: pytest.WarningsRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    async def given_up() -> None:
        calls = [cluster.call(sleep, task) for task in tasks(tmp_path, 3, 1.0)]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*calls), 0.3)

    asyncio.run(given_up())
    gc.collect()
    assert not [str(one.message) for one in recwarn if one.category is RuntimeWarning]
    time.sleep(1.5)
    assert began(tmp_path) <= 1
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
from eval_pipeline.cluster.address import Address
from eval_pipeline.cluster.dask import dask_cluster
from eval_pipeline_tests.cluster.test_dask import tasks
from eval_pipeline_tests.cluster.test_shards import compared
from eval_pipeline_tests.cluster.work import sleep
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


def test_doctor_lists_workers(services: Services, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESS, services.url)
    (found,) = doctor._cluster(lab.workspace())
    assert found.topic.startswith("worker ")
    assert ("bwrap" in found.text or "sandlock" in found.text) is found.fine
    monkeypatch.delenv(ADDRESS)
    assert list(doctor._cluster(lab.workspace())) == []


def test_nobody_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eval_pipeline.cluster.dask._CONNECT_S", 0.3)
    with (
        ExitStack() as stack,
        pytest.raises(UsageError, match=r"no scheduler answers at EVAL_CLUSTER=tcp://127\.0\.0\.1:9"),
    ):
        stack.enter_context(dask_cluster(Address("tcp://127.0.0.1:9")))


_RUN = """
import sys
from pathlib import Path
from eval_pipeline_tests.cluster.test_shards import compared
from eval_pipeline_tests.support import Lab
compared(Lab.at(Path(sys.argv[1])), "sql_sample", version="oracle")
"""


@pytest.mark.soak
def test_kills_at_random_leave_the_undisturbed_record(
    services: Services, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers and runs are killed at random; the run that ends at last has written what an undisturbed one does.

    Times are measured anew each time; all other evidence is compared byte for byte.
    """
    shutil.copytree(ROOT / "data" / "suites" / "sql_sample", lab.home.data / "suites" / "sql_sample")
    lab.versions({"name": "oracle", "provider": "oracle"})
    compared(lab, "sql_sample", version="oracle")
    whole = lab.record_file("evidence").read_bytes()
    seed = int(os.environ.get("EVAL_SEED", "0"))
    print(f"EVAL_SEED={seed}")
    rng = Random(seed)
    settings = os.environ | {ADDRESS: services.url, TURNS_A_SHARD: "5", "PYTHONPATH": str(ROOT)}
    for turn in range(20):
        for name in ("evidence", "measured_evidence"):
            lab.record_file(name).unlink()
        code: int | None = -1
        while code != 0:
            run = subprocess.Popen([sys.executable, "-c", _RUN, str(lab.home.root.parent)], env=settings, cwd=ROOT)
            try:
                code = run.wait(rng.uniform(4, 40))
            except subprocess.TimeoutExpired:
                if rng.random() < 0.5:
                    run.kill()
                else:
                    (nanny,) = [child for child in services.children[1:] if child.poll() is None]
                    for worker in psutil.Process(nanny.pid).children():
                        worker.kill()
                code = run.wait()
        assert lab.record_file("evidence").read_bytes() == whole, turn
        assert not lab.home.parts.exists()

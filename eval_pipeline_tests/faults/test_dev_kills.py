"""Processes of `dev` are killed while a backfill asks a model: none lives on, all finishes, nothing is paid twice."""

import os
import random
import signal
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.system.supervision import SUPERVISOR, end_left_behind, is_there, left_behind
from eval_pipeline.defs.running.supervisor import SupervisedProcess
from eval_pipeline_tests.browser.ui import UI, eventually, running_ui
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer
from eval_pipeline_tests.remote import answers, charged, prepare
from eval_pipeline_tests.seeds import SEED
from eval_pipeline_tests.support import Lab, command

LATENCY_S = 0.1
GONE_S = 5.0
ROLES = {
    "webserver": "running.webserver",
    "daemon": "running.daemon",
    "code server": "code-server start",
    "its inner process": "api grpc",
    "worker": "execute_run",
}
BACKFILL = """mutation { launchPartitionBackfill(backfillParams: { selector: { partitionSetName:
  "all_suites_partition_set", repositorySelector: { repositoryLocationName: "eval_pipeline", repositoryName:
  "__repository__" } }, partitionNames: [NAMES] }) { __typename ... on PythonError { message } } }"""


def processes(lab: Lab) -> list[psutil.Process]:
    """What `dev` of this home has started, whoever is its parent now."""
    found = []
    for process in psutil.process_iter():
        try:
            identity = process.environ().get(SUPERVISOR, "")
        except psutil.Error:
            continue
        if identity.endswith(f" {lab.home.root}"):
            found.append(process)
    return found


def of_role(lab: Lab, role: str) -> list[psutil.Process]:
    found = []
    for process in processes(lab):
        try:
            if ROLES[role] in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture
def served(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    return lab


@pytest.mark.services("ui")
def test_killing_dev_leaves_nothing_behind_and_it_starts_again_at_the_same_place(served: Lab, tmp_path: Path) -> None:
    with AnthropicServer(answers, latency_s=LATENCY_S) as server:
        prepare(served, server, concurrency=2)
        with running_ui(served, tmp_path / "dev.log", {}) as ui:
            supervisor = psutil.Process(int(processes(served)[0].environ()[SUPERVISOR].split(" ")[0]))
            assert {role for role in ROLES if of_role(served, role)} >= {"webserver", "daemon", "code server"}
            backfill(ui, ["claude"])
            eventually(lambda: len(server.log) > 5, ui.log.read_text)
            supervisor.kill()
            eventually(lambda: not processes(served), lambda: str(processes(served)), GONE_S)
            asked = len(server.log)
            time.sleep(1)
            assert len(server.log) == asked, "nobody asks any more"
            port = int(ui.url.rpartition(":")[2])
        with running_ui(served, tmp_path / "again.log", {}, port) as ui:
            eventually(lambda: ui.runs() and ui.runs()[0]["status"] == "FAILURE")
            backfill(ui, ["claude"])
            eventually(lambda: ui.runs()[0]["status"] == "SUCCESS", ui.log.read_text)
        in_flight = 8
        assert charged(server).total() - len(charged(server)) <= in_flight
        assert served.one("SELECT count(*) FROM turn_results") == len(charged(server)) - recoveries(served)


def recoveries(lab: Lab) -> int:
    found: int = lab.one("SELECT count(*) FROM attempts WHERE number > 0")
    return found


def backfill(ui: UI, names: list[str]) -> None:
    """Launches a backfill, once the model versions are partitions."""
    told = ", ".join(f'"{name}"' for name in names)
    asked = BACKFILL.replace("NAMES", told)
    eventually(lambda: ui.query(asked)["launchPartitionBackfill"]["__typename"] == "LaunchBackfillSuccess")


def runs(ui: UI) -> list[Any]:
    """The runs, as soon as the webserver is there again."""
    found: list[Any] = eventually(lambda: _runs(ui), ui.log.read_text)
    return found


def _runs(ui: UI) -> list[Any] | None:
    try:
        return ui.runs()
    except httpx2.TransportError:
        return None


def kill_one(lab: Lab, rng: random.Random) -> str:
    """Kills a process of a role drawn at random; its name."""
    role = rng.choice(sorted(ROLES))
    for process in of_role(lab, role)[:1]:
        process.send_signal(signal.SIGKILL)
    return role


@pytest.mark.services("ui")
@pytest.mark.soak
def test_forty_kills_of_single_processes(served: Lab, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    print(f"seed {SEED}")
    names = [f"claude-{number}" for number in range(8)]
    with AnthropicServer(answers, latency_s=LATENCY_S) as server:
        prepare(served, server, concurrency=2)
        entry = {"provider": "anthropic", "model": "claude-fake-1", "max_tokens": 200, "concurrency": 2}
        entry |= {"price": {"input": 1, "output": 2}, "options": {"base_url": server.url}}
        served.versions(*({"name": name, "max_tokens": 200 + n} | entry for n, name in enumerate(names)))
        for round_ in range(8):
            with running_ui(served, tmp_path / f"dev-{round_}.log", {}) as ui:
                backfill(ui, names)
                for _ in range(5):
                    time.sleep(rng.uniform(2, 6))
                    print(kill_one(served, rng), end=" ", flush=True)
                eventually(lambda: not any("QUEUED" in run["status"] for run in runs(ui)))
            eventually(lambda: not processes(served), seconds=GONE_S)
        with running_ui(served, tmp_path / "last.log", {}) as ui:
            backfill(ui, names)

            def done() -> bool:
                newest = {run["tags"].get("dagster/partition"): run["status"] for run in reversed(runs(ui))}
                return all(newest.get(name) == "SUCCESS" for name in names)

            eventually(done, ui.log.read_text)
        twice = charged(server).total() - len(charged(server))
        print(f"{charged(server).total()} paid, {twice} of them again, since they were in flight")
        assert twice <= 40 * 4


class TestSupervision:
    """Who is told from whom by identity, not by number."""

    def test_a_process_is_left_behind_when_its_supervisor_is_another_one_by_now(self, tmp_path: Path) -> None:
        code = "import time; time.sleep(60)"
        gone = f"{os.getpid()} 1.00 {tmp_path}"  # our number, started at another time
        child = psutil.Popen([sys.executable, "-c", code], env=os.environ | {SUPERVISOR: gone})
        assert not is_there(gone)
        eventually(lambda: [p.pid for p in left_behind(str(tmp_path))] == [child.pid], seconds=GONE_S)
        assert left_behind(str(tmp_path / "other")) == []
        assert end_left_behind(str(tmp_path)) == 1
        assert not child.is_running()

    def test_processes_of_a_living_supervisor_are_left_alone(self, tmp_path: Path) -> None:
        me = psutil.Process()
        identity = f"{me.pid} {me.create_time():.2f} {tmp_path}"
        child = psutil.Popen(
            [sys.executable, "-c", "import time; time.sleep(60)"], env=os.environ | {SUPERVISOR: identity}
        )
        try:
            assert is_there(identity)
            assert end_left_behind(str(tmp_path)) == 0
            assert child.poll() is None
        finally:
            child.kill()
            child.wait()


class TestChildren:
    """A process that ends is started again, later each time, and not for ever."""

    def test_pauses_grow_and_end(self) -> None:
        child, starts = SupervisedProcess("thing", ["false"]), list[float]()

        def look_until_it_fails() -> None:
            for half_seconds in range(1000):
                before = child.process
                child.look(half_seconds / 2)
                if child.process is not None and before is None:
                    starts.append(half_seconds / 2)
                    child.process.wait()

        with pytest.raises(UsageError, match="the thing has ended 7 times in a row, the last time with 1"):
            look_until_it_fails()
        pauses = [later - earlier for earlier, later in pairwise(starts)]
        assert pauses == sorted(pauses)
        assert pauses[-1] >= 16

    def test_one_that_ran_for_long_is_started_at_once(self) -> None:
        child = SupervisedProcess("thing", ["sleep", "60"])
        for now in (0.0, 100.0, 200.0):
            child.look(now)
            assert child.process is not None
            child.process.kill()
            child.process.wait()
            child.look(now + 99.0)
        assert child.restarts == 1
        child.look(399.0)
        child.stop()


def test_a_second_dev_on_a_home_says_so(lab: Lab, tmp_path: Path) -> None:
    from eval_pipeline.store.durable import locked

    lab.suite()
    lab.home.root.mkdir(parents=True, exist_ok=True)
    with locked(lab.home.root / "dev.lock", 0):
        said = command("dev", "--port", "1")
    assert (said.code, said.err) == (2, f"error: another `eval-pipeline dev` serves {lab.home.root}; end it first\n")

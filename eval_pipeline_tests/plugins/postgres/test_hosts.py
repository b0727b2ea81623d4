"""Two hosts with homes of their own and one database: they take turns, one outlives the other, nobody pays twice."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from eval_pipeline.store.published.query import run_query
from eval_pipeline.store.tables import GENERATIONS
from eval_pipeline_plugins.postgres.leases import LEASE_S
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer
from eval_pipeline_tests.forked import Child, forked
from eval_pipeline_tests.remote import VERSION, answers, charged, holding, prepare
from eval_pipeline_tests.servers import STATE_PASSWORD, StatePostgres
from eval_pipeline_tests.support import Lab

pytestmark = pytest.mark.services("postgres")
CONCURRENCY = 4
LEASE = 2.0
QUESTIONS = 60
"""12 conversations of 4 turns, and one recovery for each of the answers that do not parse."""


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv(LEASE_S, str(LEASE))


class Host:
    """A run on a host of its own."""

    PROGRAM = "attempts"
    process: "Child | subprocess.Popen[bytes]"

    def __init__(self, name: str, lab: Lab) -> None:
        self.log = lab.home.root.parent / f"{name}.log"
        place = (name, str(lab.home.root), str(lab.home.data))
        self.process = forked(
            f"eval_pipeline_tests.plugins.postgres.host:{self.PROGRAM}", place, lab.environment, self.log
        )

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        return self.process.wait(120)

    def said(self) -> str:
        return self.log.read_text()


def until(happened: Callable[[], bool], *hosts: Host) -> None:
    give_up = time.monotonic() + 100
    while not happened():
        assert time.monotonic() < give_up, [host.said()[-2000:] for host in hosts]
        time.sleep(0.005)


def reached(server: AnthropicServer, moment: int, host: Host) -> None:
    """Waits for so many requests, or the end of the run."""
    until(lambda: len(server.log) >= moment or host.process.poll() is not None, host)


@contextmanager
def two_homes(folder: Path, **settings: bool) -> Iterator[tuple[AnthropicServer, Lab, Lab]]:
    with AnthropicServer(answers, latency_s=0.05) as server:
        labs = [prepare(Lab.at(folder / name), server, concurrency=CONCURRENCY, **settings) for name in ("a", "b")]
        yield server, labs[0], labs[1]


def all_were_paid_for(server: AnthropicServer, twice: int = 0) -> None:
    """Each question once, but for those that were in flight when somebody was killed or stopped."""
    assert len(charged(server)) == QUESTIONS
    assert charged(server).total() - QUESTIONS <= twice


def responses(lab: Lab) -> list[tuple[object, ...]]:
    inputs = lab.inputs("small", VERSION)
    rows = inputs.read(GENERATIONS, ["turn_id", "sample", "response"]).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def test_two_hosts_wait_for_each_other_and_share_what_was_paid(database_url: str, tmp_path: Path) -> None:
    with two_homes(tmp_path) as (server, a, b):
        first = Host("host-a", a)
        until(lambda: len(server.log) >= 5, first)
        second = Host("host-b", b)
        assert (first.wait(), second.wait()) == (0, 0), first.said() + second.said()
        all_were_paid_for(server)
    assert responses(a) == responses(b)
    assert holding(tmp_path, STATE_PASSWORD) == []


def test_a_host_that_sleeps_is_outlived_and_pays_nothing_when_it_wakes(database_url: str, tmp_path: Path) -> None:
    with two_homes(tmp_path) as (server, a, b):
        first = Host("host-a", a)
        until(lambda: len(server.log) >= 8, first)
        first.send(signal.SIGSTOP)
        before = len(server.log)
        second = Host("host-b", b)
        try:
            until(lambda: len(server.log) >= before + 8, second)  # the other one is in the midst of it
        finally:
            first.send(signal.SIGCONT)
        assert first.wait() == 1
        assert "another run has taken over" in first.said()
        assert second.wait() == 0, second.said()
        all_were_paid_for(server, CONCURRENCY)
    assert a.inputs("small", VERSION).header(GENERATIONS) is None


def kill_hosts(folder: Path, kills: int, seed: int) -> None:
    rng = Random(seed)
    with two_homes(folder) as (server, a, b):
        for kill in range(kills):
            host = Host(f"host-{kill}", (a, b)[kill % 2])
            moment = len(server.log) + rng.randint(1, max(2, 80 // kills))
            reached(server, moment, host)
            host.send(signal.SIGKILL)
            host.wait()
        last = Host("host-last", b)
        assert last.wait() == 0, last.said()
        all_were_paid_for(server, kills * CONCURRENCY * 4)


def kill_postgres(folder: Path, server_of_state: StatePostgres, kills: int, seed: int) -> None:
    """Each kill is in the midst of a run, which waits until the server is back."""
    rng = Random(seed)
    with two_homes(folder) as (server, a, _):
        host = Host("host-a", a)
        for _ in range(kills):
            moment = len(server.log) + rng.randint(3, max(4, 60 // (kills + 1)))
            reached(server, moment, host)
            if host.process.poll() is not None:
                break
            server_of_state.kill()
            time.sleep(rng.random())
            server_of_state.start()
        assert host.wait() == 0, host.said()
        all_were_paid_for(server)
        assert "postgresql://keeper@127.0.0.1" not in host.said() or STATE_PASSWORD not in host.said()


def test_a_host_that_was_killed_is_outlived(database_url: str, tmp_path: Path) -> None:
    kill_hosts(tmp_path, kills=1, seed=1)


def test_a_run_outlives_restarts_of_the_database_and_pays_nothing_twice(
    database_url: str, state_server: StatePostgres, tmp_path: Path
) -> None:
    kill_postgres(tmp_path, state_server, kills=2, seed=1)


@pytest.mark.soak
def test_twenty_hosts_are_killed(database_url: str, tmp_path: Path) -> None:
    kill_hosts(tmp_path, kills=20, seed=2)


@pytest.mark.soak
def test_the_database_is_killed_twenty_times(database_url: str, state_server: StatePostgres, tmp_path: Path) -> None:
    for seed in range(5):
        kill_postgres(tmp_path / str(seed), state_server, kills=4, seed=seed)


class CommandLine(Host):
    """`eval-pipeline run` on a host of its own, with Dagster."""

    PROGRAM = "command_line"


@pytest.mark.soak
def test_the_command_line_outlives_restarts_of_the_database(
    database_url: str, state_server: StatePostgres, tmp_path: Path
) -> None:
    rng = Random(7)
    with two_homes(tmp_path) as (server, a, _):
        host = CommandLine("host-a", a)
        for moment in (8, 30, 55, QUESTIONS):
            reached(server, moment, host)
            state_server.kill()
            time.sleep(2 * rng.random())
            state_server.start()
        assert host.wait() == 0, host.said()
        all_were_paid_for(server)
        assert STATE_PASSWORD not in host.said()


@pytest.mark.soak
def test_a_run_that_was_killed_costs_another_host_nothing_and_its_own_marks_it(
    database_url: str, tmp_path: Path
) -> None:
    with two_homes(tmp_path) as (server, a, b):
        first = CommandLine("host-a", a)
        until(lambda: len(server.log) >= 8, first)
        first.send(signal.SIGKILL)
        first.wait()
        time.sleep(1.5 * LEASE)
        for name, lab in (("host-b", b), ("host-a", a)):
            again = CommandLine(name, lab)
            assert again.wait() == 0, again.said()
        all_were_paid_for(server, CONCURRENCY * 4)
    found = run_query(a.home.store, "SELECT status FROM runs ORDER BY started_at").to_pylist()
    assert found == [{"status": "failed"}, {"status": "complete"}]

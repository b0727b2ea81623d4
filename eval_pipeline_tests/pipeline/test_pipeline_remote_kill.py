"""SIGKILL at random moments while a model behind an API is asked, singly and in batches: nothing is paid for twice."""

import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from eval_pipeline.stages.attempts import model_calls
from eval_pipeline_tests.fakes.anthropic_faults import BATCH_CREATE, BATCH_GET, Asked, Fault, Slow
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer
from eval_pipeline_tests.forked import Child, forked
from eval_pipeline_tests.remote import MODULE, PACE, RUN, VERSION, answers, charged, contents, holding, prepare
from eval_pipeline_tests.support import Lab

CONCURRENCY = 4
IN_FLIGHT = 4 * CONCURRENCY
"""Answers on their way to the disk are in flight too: there are more workers than calls may be under way."""
LATENCY_S = 0.03


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setattr(model_calls, "PACE", PACE)


def log_of(lab: Lab) -> Path:
    return lab.home.root.parent / "child.log"


def start(lab: Lab, *arguments: str) -> Child:
    return forked(f"{MODULE}:main", arguments or (VERSION,), lab.environment, log_of(lab))


def kill_when(lab: Lab, happened: Callable[[], bool]) -> bool:
    """Evaluates in a process and kills it when that has happened; False where it ended before."""
    child = start(lab)
    try:
        deadline = time.monotonic() + 100
        while not happened():
            if child.poll() is not None:
                assert child.poll() == 0, log_of(lab).read_text()[-2000:]
                return False
            assert time.monotonic() < deadline, "the process does not get on"
            time.sleep(0.01)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    return True


def finish(lab: Lab) -> None:
    lab.evaluate(version=VERSION)


def settled(server: AnthropicServer) -> None:
    """Waits until the server has dealt with what was in flight at a kill."""
    deadline = time.monotonic() + 20
    while any(entry.took == 0 for entry in list(server.log)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def journalled(lab: Lab) -> int:
    if not lab.home.journal.exists():
        return 0
    with sqlite3.connect(lab.home.journal) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'responses'").fetchone():
            return 0
        return int(connection.execute("SELECT count(*) FROM responses").fetchone()[0])


def undisturbed(folder: Path, **settings: bool) -> dict[str, object]:
    with AnthropicServer(answers) as server:
        lab = prepare(Lab.at(folder), server, **settings)
        lab.evaluate("small", VERSION)
        return dict(contents(lab))


def singles(lab: Lab, folder: Path, kills: int, seed: int) -> None:
    rng = Random(seed)
    with AnthropicServer(answers, latency_s=LATENCY_S) as server:
        prepare(lab, server, concurrency=CONCURRENCY)
        lost = 0
        for _ in range(kills):
            moment = len(server.log) + rng.randint(1, max(2, 100 // kills))
            if not kill_when(lab, lambda moment=moment: len(server.log) >= moment):  # type: ignore[misc]
                break
            settled(server)
            lost_now = charged(server).total() - journalled(lab) - lost
            assert 0 <= lost_now <= IN_FLIGHT
            lost += lost_now
        finish(lab)
        assert charged(server).total() == journalled(lab) + lost
        assert len(charged(server)) == journalled(lab)
    assert contents(lab) == undisturbed(folder)
    assert holding(lab.home.root.parent, KEY) == []


def late(asked: Asked) -> Fault | None:
    """Batches are accepted at once, but the reply takes a while: time to kill in between."""
    return Slow(0.3) if asked.operation == BATCH_CREATE else None


def in_batches(lab: Lab, folder: Path, kills: int, seed: int) -> None:
    rng = Random(seed)
    with AnthropicServer(answers, faults=late, batch_polls=5) as server:
        prepare(lab, server, batch=True, history="own", conversations=6)
        for _ in range(kills):
            moment = len(server.log) + rng.randint(1, max(3, 60 // kills))
            if not kill_when(lab, lambda moment=moment: len(server.log) >= moment):  # type: ignore[misc]
                break
            settled(server)
        finish(lab)
        handed_in = Counter(key for batch in server.model.batches for key in batch.requests)
        assert set(handed_in.values()) == {1}
        assert charged(server) == dict.fromkeys(charged(server), 1)
        assert len(handed_in) == journalled(lab) == len(charged(server))
        assert not server.requests()
        with sqlite3.connect(lab.home.journal) as connection:
            found = dict(connection.execute("SELECT batch_id, state FROM batches WHERE state != 'lost'").fetchall())
        assert found == {batch.id: "collected" for batch in server.model.batches}
    expected = undisturbed(folder, batch=True, history="own", conversations=6)
    assert contents(lab) == expected
    assert holding(lab.home.root.parent, KEY) == []


def test_singly_each_answer_that_arrived_is_paid_for_once(lab: Lab, tmp_path: Path) -> None:
    singles(lab, tmp_path / "undisturbed", kills=2, seed=1)


def test_no_batch_is_lost_or_handed_in_twice(lab: Lab, tmp_path: Path) -> None:
    in_batches(lab, tmp_path / "undisturbed", kills=2, seed=1)


def test_a_kill_between_acceptance_and_journalling(lab: Lab, tmp_path: Path) -> None:
    with AnthropicServer(answers, faults=late, batch_polls=2) as server:
        prepare(lab, server, batch=True)
        assert kill_when(lab, lambda: bool(server.model.batches))
        with sqlite3.connect(lab.home.journal) as connection:
            assert connection.execute("SELECT batch_id, state FROM batches").fetchall() == [(None, "open")]
        settled(server)
        finish(lab)
        assert [len(batch.requests) for batch in server.model.batches] == [48, 12]
        assert charged(server) == dict.fromkeys(charged(server), 1)
    assert contents(lab) == undisturbed(tmp_path / "undisturbed", batch=True)


def test_an_interrupted_run_does_not_wait_for_its_batch(lab: Lab) -> None:
    with AnthropicServer(answers, batch_polls=10**6) as server:
        prepare(lab, server, batch=True)
        child = start(lab, *RUN)
        while not server.requests(BATCH_GET):
            assert child.poll() is None
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130


@pytest.mark.soak
@pytest.mark.parametrize("kill", [singles, in_batches])
@pytest.mark.parametrize("seed", range(3))
def test_twenty_kills(lab: Lab, tmp_path: Path, seed: int, kill: Callable[..., None]) -> None:
    kill(lab, tmp_path / "undisturbed", kills=20, seed=seed)

"""SIGKILL in the middle of asking: the next run asks only for what is missing, and ends like an undisturbed one."""

import os
import signal
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from eval_pipeline.providers import registry
from eval_pipeline.workspace.noting.commands import ended
from eval_pipeline_tests.fakes.logged import PLACE
from eval_pipeline_tests.forked import forked
from eval_pipeline_tests.support import Lab, case

CONVERSATIONS, TURNS, CONCURRENCY = 12, 4, 4
UNRECORDED = CONCURRENCY
"""Answers at most that a kill loses: of the calls that were in flight."""
MODULE = "eval_pipeline_tests.fakes.logged"


@pytest.fixture
def logged(lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lab:
    monkeypatch.setitem(registry.PROVIDERS, "logged", PLACE)
    monkeypatch.setenv("LOGGED_REQUESTS", str(tmp_path / "requests.log"))
    prepare(lab)
    return lab


def prepare(lab: Lab) -> None:
    turns = [("50", 50.0), ("add(50, 7)", 57.0), ("subtract(50, 1)", 49.0), ("7", 7.0)][:TURNS]
    lab.suite(cases=[case(f"c{i:02}", *turns) for i in range(CONVERSATIONS)])
    price = {"input": 1, "output": 2}
    lab.versions({"name": "logged", "provider": "logged", "concurrency": CONCURRENCY, "price": price})


def requests() -> Counter[str]:
    log = Path(os.environ["LOGGED_REQUESTS"])
    return Counter(log.read_text().splitlines()) if log.exists() else Counter()


def kill_at(lab: Lab, count: int, *arguments: str) -> None:
    """Runs the evaluation in a process of its own, which is killed with its request of that number."""
    environment = {**lab.environment, "LOGGED_LATENCY_S": "0.03", "LOGGED_KILL_AT": str(count)}
    child = forked(f"{MODULE}:main", arguments, environment, lab.home.root.parent / "child.log")
    assert child.wait(100) == -signal.SIGKILL, child.log.read_text()


def journalled(lab: Lab) -> int:
    with sqlite3.connect(lab.home.journal) as connection:
        return int(connection.execute("SELECT count(*) FROM responses").fetchone()[0])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], set[str]]:
    """What a run publishes that nobody kills, and its requests."""
    folder = tmp_path_factory.mktemp("undisturbed")
    other = Lab.at(folder)
    prepare(other)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(registry.PROVIDERS, "logged", PLACE)
        patched.setenv("LOGGED_REQUESTS", str(folder / "requests.log"))
        other.evaluate("small", "logged", publish=True)
        assert set(requests().values()) == {1}
        return other.store_contents(), set(requests())


# 48 generations, then 10 recovery attempts: in the middle, while recovering.
@pytest.mark.parametrize("moment", [20, 52])
def test_a_killed_run_goes_on_where_it_was(
    logged: Lab, moment: int, undisturbed: tuple[dict[str, str], set[str]]
) -> None:
    kill_at(logged, moment)
    before, known = requests(), journalled(logged)
    assert before.total() - known <= UNRECORDED
    made = logged.evaluate("small", "logged", publish=True)
    after = requests()
    expected, asked_then = undisturbed
    assert after.keys() == asked_then
    twice = [request for request, count in after.items() if count > 1]
    assert max(after.values()) <= 2
    assert len(twice) == before.total() - known
    assert set(twice) <= before.keys()
    facts = [made[name].facts for name in ("generations", "recovery_attempts")]
    assert sum(found["calls"] for found in facts) == after.total() - before.total()
    assert logged.store_contents() == expected


def test_a_run_that_is_killed_again_and_again_pays_once_for_what_arrived(logged: Lab) -> None:
    lost = 0
    for _ in range(3):
        kill_at(logged, 15)
        lost = requests().total() - journalled(logged)
        assert lost <= UNRECORDED * 3
    logged.evaluate("small", "logged", upto="recovery_attempts")
    assert requests().total() - lost == journalled(logged)
    assert max(requests().values()) <= 4
    assert len(requests()) == journalled(logged)


def test_a_killed_command_leaves_a_run_that_the_next_one_sweeps(logged: Lab) -> None:
    day = "2026-03-01"
    arguments = ["run", "--no-report", "--eval-date", day]
    kill_at(logged, 20, *arguments)
    before, known = requests(), journalled(logged)
    said = logged.cli(*arguments)
    assert said.code == 0, said.text
    after = requests()
    assert max(after.values()) <= 2
    assert sum(count - 1 for count in after.values()) == before.total() - known <= UNRECORDED
    assert logged.one("SELECT count(*) FROM turn_results") == CONVERSATIONS * TURNS
    statuses = dict(logged.sql("SELECT status, count(*) FROM runs GROUP BY 1"))
    assert statuses == {"complete": 1, "failed": 1}
    told = [entry for _, note, _ in ended(logged.home) for entry in note.entries if "run_ended" in entry]
    assert [entry["status"] for entry in told] == ["failed", "success"]

"""Limits of processor time: a machine that has no time for a query does not make it a slow one."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql import deadline
from eval_pipeline.sandbox.sql.deadline import PATIENCE, Deadline, cpu_of
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.live.places import LivePlace
from eval_pipeline.sandbox.sql.process import SqlProcess
from eval_pipeline.sandbox.sql.runner import patience_with

_RUN = "eval_pipeline.sandbox.sql.tasks:run_query"
LIMITS = SqlLimits(seconds=0.4)
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture(params=["duckdb", "sqlite"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = tmp_path / "a.db"
    if request.param == "duckdb":
        duckdb.connect(str(path)).close()
    else:
        path.touch()
    return str(path)


@pytest.fixture
def process() -> Iterator[SqlProcess]:
    found = SqlProcess(LIMITS)
    try:
        yield found
    finally:
        found.kill()


class Clock:
    """The clock, which a test puts forward; processor time is real, unless it is put forward as well."""

    def __init__(self) -> None:
        self.now, self.used = time.monotonic(), 0.0

    def monotonic(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.used

    def clock_gettime(self, clock: int) -> float:
        return time.clock_gettime(clock)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(deadline, "time", found)
    return found


def run(process: SqlProcess, database: str, sql: str, seconds: float = LIMITS.seconds, **more: float) -> Any:
    return process.call(_RUN, (database, sql, LIMITS.as_json()), seconds, **more)


def test_a_query_that_waits_for_a_processor_is_not_too_slow(
    process: SqlProcess, database: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(process, database, "SELECT 0", seconds=30.0)  # opens the database
    os.kill(process.pid, signal.SIGSTOP)
    looks, left = list[float](), Deadline.left

    def later(self: Deadline) -> float:
        clock.now += LIMITS.seconds
        looks.append(left(self))
        if len(looks) == 4:
            os.kill(process.pid, signal.SIGCONT)
        return looks[-1]

    monkeypatch.setattr(Deadline, "left", later)
    assert run(process, database, "SELECT 1")["rows"] == [[1]]
    assert len(looks) >= 4


def test_a_query_that_takes_too_much_of_a_processor_is(process: SqlProcess, database: str) -> None:
    before = cpu_of(process.pid)
    with pytest.raises(SqlError) as caught:
        run(process, database, ENDLESS, seconds=30.0)  # the child's own limit
    assert caught.value.error_class is ErrorClass.TIMEOUT
    assert process.alive and cpu_of(process.pid) - before >= LIMITS.seconds
    with pytest.raises(SqlError, match=r"stopped after 0\.2 s$") as caught:
        run(process, database, ENDLESS, seconds=0.2)  # its parent's
    assert caught.value.error_class is ErrorClass.TIMEOUT
    assert not process.alive


def test_a_child_that_does_nothing_is_ended_all_the_same(process: SqlProcess, database: str) -> None:
    os.kill(process.pid, signal.SIGSTOP)
    told = r"stopped after 1 s by the clock, with less than 0\.1 s of a processor"
    with pytest.raises(SqlError, match=told):
        run(process, database, "SELECT 1", seconds=0.1, patience=10.0)


def test_a_deadline_comes_by_processor_time_or_by_the_clock(clock: Clock) -> None:
    busy, waiting = Deadline.after(0.05), Deadline.after(0.01, patience=10.0)
    clock.now += 0.09
    assert waiting.left() > 0
    clock.now += 0.02
    assert busy.left() > 0 >= waiting.left()
    clock.used += 0.05
    assert busy.left() <= 0


@pytest.mark.parametrize(("seconds", "at_most"), [(0.2, 6.0), (11.0, 330.0), (61.0, 661.0), (101.0, 701.0)])
def test_what_hangs_is_waited_for_no_longer_than_ten_minutes_more(seconds: float, at_most: float, clock: Clock) -> None:
    assert Deadline.after(seconds).latest - clock.now == pytest.approx(at_most)
    assert Deadline.after(seconds, patience=1.0).latest - clock.now == pytest.approx(seconds)


def test_of_a_process_that_has_ended_the_clock_counts(process: SqlProcess, clock: Clock) -> None:
    process.kill()
    assert cpu_of(process.pid) == clock.now


def test_the_time_of_a_server_is_not_its_clients() -> None:
    server = LivePlace.__new__(LivePlace)
    assert patience_with(Path("a.db"), "b.db") == patience_with() == PATIENCE
    assert patience_with(Path("a.db"), server) == 1.0

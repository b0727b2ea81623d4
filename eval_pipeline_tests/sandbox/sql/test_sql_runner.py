"""The SQL runner: what runs, what does not and how that is told, and that nothing outlives it."""

import asyncio
import hashlib
import os
import signal
import sqlite3
import threading
import time
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import duckdb
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.model import ErrorClass, Failed
from eval_pipeline.sandbox.sql.effects.postgres_copy import PrivatePostgres
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.process import KilledError, SqlProcess
from eval_pipeline.sandbox.sql.rows import SqlError, SqlRows
from eval_pipeline.sandbox.sql.runner import SqlProcesses, SqlRunner
from eval_pipeline.sandbox.sql.wire import HEADER_BYTES, pack, row_to_wire, unpack
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("sql_runner.yaml")
CASES = [(engine, case) for engine, cases in GOLDEN.items() for case in cases]
ROWS = "INSERT INTO t VALUES (1, 'a'), (2, NULL)"


@pytest.fixture(scope="module")
def databases(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("databases")
    paths = {"sqlite": folder / "small.sqlite", "duckdb": folder / "small.duckdb"}
    with sqlite3.connect(paths["sqlite"]) as small, duckdb.connect(str(paths["duckdb"])) as other:
        for connection in (small, other):
            connection.execute("CREATE TABLE t (x INT, s VARCHAR)")
            connection.execute(ROWS)
    return paths


@pytest.fixture(scope="module")
def runner():
    with_limits = SqlRunner(SqlLimits(seconds=0.5, rows=5_000), most=1)
    yield with_limits
    with_limits.close()


@pytest.fixture
def processes():
    found = SqlProcesses(SqlLimits(), most=1)
    yield found
    found.close()


@pytest.fixture
def process():
    found = SqlProcess(SqlLimits())
    yield found
    found.kill()


@pytest.mark.parametrize(("engine", "case"), CASES, ids=[f"{engine}: {case['sql'][:60]}" for engine, case in CASES])
def test_a_query_gives_its_rows_or_the_class_of_its_error(runner, databases, engine, case):
    before = hashlib.sha256(databases[engine].read_bytes()).digest()
    found = runner.run_now(databases[engine], case["sql"])
    if "rows" in case:
        assert isinstance(found, SqlRows), found
        assert [list(row) for row in found.rows] == case["rows"]
    else:
        assert isinstance(found, Failed), found
        assert (found.error_class, bool(found.message)) == (case["error"], True)
        assert isinstance(runner.run_now(databases[engine], "SELECT 1"), SqlRows)  # the next one is not disturbed
    assert hashlib.sha256(databases[engine].read_bytes()).digest() == before


@pytest.mark.parametrize("hidden", [False, True])
def test_a_select_cannot_overwrite_the_database_that_it_reads(runner, databases, hidden):
    place = databases["duckdb"]
    before = place.read_bytes()
    sql = f"WITH w AS (COPY (SELECT 1) TO '{place}' (FORMAT csv, USE_TMP_FILE false)) SELECT * FROM w"
    if hidden:
        (made,) = duckdb.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchone() or ()
        sql = f"FROM json_execute_serialized_sql('{made.replace(chr(39), 2 * chr(39))}')"
    found = runner.run_now(place, sql)
    assert isinstance(found, Failed) and place.read_bytes() == before
    assert isinstance(runner.run_now(place, "SELECT x FROM t"), SqlRows)


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_the_bytes_of_a_result_are_capped(databases, engine):
    small = SqlRunner(SqlLimits(result_bytes=1000), most=1)
    try:
        kept = small.run_now(databases[engine], f"SELECT '{'x' * 900}'")
        refused = small.run_now(databases[engine], f"SELECT '{'x' * 1100}'")
    finally:
        small.close()
    assert isinstance(kept, SqlRows) and isinstance(refused, Failed)
    assert refused.error_class is ErrorClass.MEMORY


def test_what_is_no_database_is_told(runner, tmp_path):
    (tmp_path / "text.duckdb").write_text("just some text, long enough to be looked at as a database file")
    absent, other = (runner.run_now(tmp_path / name, "SELECT 1") for name in ("nowhere.duckdb", "text.duckdb"))
    assert isinstance(absent, Failed) and "nowhere.duckdb" in absent.message
    assert isinstance(other, Failed)


def test_values_keep_their_types(runner, databases):
    sql = (
        "SELECT 1.50::DECIMAL(9, 2), DATE '2024-01-02', TIMESTAMP '2024-01-02 03:04:05', 'ä', NULL, true, 2.5, "
        "[1, 2], {'$date': 'x'}, INTERVAL 3 DAY, '\\x61'::BLOB"
    )
    found = runner.run_now(databases["duckdb"], sql)
    assert isinstance(found, SqlRows)
    assert found.rows == [
        (Decimal("1.50"), date(2024, 1, 2), datetime(2024, 1, 2, 3, 4, 5), "ä", None, True, 2.5, [1, 2],
         {"$date": "x"}, timedelta(days=3), b"a")
    ]  # fmt: skip


def test_a_changed_database_is_read_anew(runner, tmp_path):
    path = tmp_path / "grows.sqlite"
    for number in (1, 2):
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS g (x)")
            connection.execute("INSERT INTO g VALUES (?)", (number,))
        found = runner.run_now(path, "SELECT COUNT(*) FROM g")
        assert isinstance(found, SqlRows) and found.rows == [(number,)]


def ended(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie"


def test_a_child_is_reused_as_long_as_it_behaves(processes):
    pids = {processes.call("os:getpid", (), 5.0) for _ in range(3)}
    assert len(pids) == 1
    assert pids != {os.getpid()}
    processes.close()
    assert all(map(ended, pids))


def test_a_child_that_dies_is_told_and_replaced(processes):
    with pytest.raises(Exception, match="signal 6") as died:
        processes.call("os:abort", (), 5.0)
    assert died.value.error_class is ErrorClass.MEMORY
    assert processes.call("os:getpid", (), 5.0) > 0


def children() -> list[psutil.Process]:
    return [one for one in psutil.Process().children() if one.status() != "zombie"]


@pytest.mark.parametrize("at_work", [True, False], ids=["at work", "starting"])
def test_a_task_whose_child_is_killed_from_outside_is_done_again(at_work, processes):
    before, killed = {one.pid for one in children()}, list[int]()

    def kill() -> None:
        while not (found := [one for one in children() if one.pid not in before]):
            time.sleep(0.001)
        found[0].kill()
        killed.append(found[0].pid)

    if at_work:
        before.discard(processes.call("os:getpid", (), 5.0))
    thread = threading.Timer(0.3 if at_work else 0.0, kill)
    thread.start()
    assert processes.call("time:sleep", (0.6,), 20.0) is None
    thread.join()
    assert killed and processes.call("os:getpid", (), 5.0) not in killed


@pytest.mark.parametrize("hangs", [True, False], ids=["hanging", "at work"])
def test_the_end_does_not_wait_for_a_query_that_nobody_waits_for(tmp_path, hangs):
    (tmp_path / "a.db").touch()
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

    async def interrupted() -> None:
        async with SqlRunner(SqlLimits(seconds=60.0), most=1) as runner:
            await runner.run(tmp_path / "a.db", "SELECT 1")
            (child,) = runner._processes._idle
            if hangs:
                os.kill(child.pid, signal.SIGSTOP)
            asking = asyncio.ensure_future(runner.run(tmp_path / "a.db", endless))
            while not runner._processes._busy:
                await asyncio.sleep(0.01)
            asking.cancel()
        assert not child.alive

    began = time.monotonic()
    asyncio.run(interrupted())
    assert time.monotonic() - began < 50


def test_what_is_ended_with_its_child_is_no_result(processes):
    closing = threading.Timer(0.3, processes.close)
    closing.start()
    with pytest.raises(RuntimeError, match="were ended"):
        processes.call("time:sleep", (60,), 90.0)
    closing.join()


def test_an_idle_child_that_is_killed_leaves_no_zombie(processes):
    child = psutil.Process(processes.call("os:getpid", (), 5.0))
    child.kill()
    deadline = time.monotonic() + 60
    while child.is_running() and time.monotonic() < deadline:  # a zombie counts as running
        time.sleep(0.01)
    assert not child.is_running()
    assert processes.call("os:getpid", (), 5.0) != child.pid


def test_how_an_idle_child_ended_is_known_to_its_next_task(process):
    os.kill(process.pid, signal.SIGKILL)
    while psutil.pid_exists(process.pid):
        time.sleep(0.01)
    with pytest.raises(KilledError, match="signal 9"):
        process.call("os:getpid", (), 5.0)
    assert not process.alive


def test_a_task_that_gets_every_child_killed_is_done_three_times_at_most(processes, tmp_path):
    with pytest.raises(Exception, match="signal 9") as died:
        processes.call("os:system", (f"mkdir {tmp_path}/$PPID; kill -9 $PPID",), 5.0)
    assert died.value.error_class is ErrorClass.MEMORY
    assert len(list(tmp_path.iterdir())) == 3


def test_the_address_space_is_limited():
    process = SqlProcess(SqlLimits(memory_bytes=256 * 1024 * 1024))
    try:
        with pytest.raises(Exception, match="memory"):
            process.call("builtins:bytearray", (1024 * 1024 * 1024,), 20.0)
        assert not process.alive  # what is left of its memory is in pieces
    finally:
        process.kill()


def test_a_task_that_is_none_is_told_and_a_child_sees_no_secrets(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a planted secret")
    process = SqlProcess(SqlLimits())
    try:
        with pytest.raises(Exception, match="fault"):
            process.call("os:no_such_function", (), 5.0)
        assert process.alive
        assert process.call("os:getenv", ("ANTHROPIC_API_KEY",), 5.0) is None
    finally:
        process.kill()


def test_a_child_ends_with_its_parent():
    reader, writer = os.pipe()
    parent = os.fork()
    if not parent:
        os.write(writer, str(SqlProcess(SqlLimits()).pid).encode())
        os._exit(0)
    child = int(os.read(reader, 20))
    os.waitpid(parent, 0)
    deadline = time.monotonic() + 20
    while not ended(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    alive = not ended(child)
    if alive:
        os.kill(child, signal.SIGKILL)
    assert not alive


def test_queries_run_side_by_side(databases):
    async def both() -> list[SqlRows | Failed]:
        async with SqlRunner(most=2) as side_by_side:
            return await asyncio.gather(
                *(side_by_side.run(databases[engine], "SELECT COUNT(*) FROM t") for engine in ("sqlite", "duckdb") * 3)
            )

    assert [found.rows for found in asyncio.run(both()) if isinstance(found, SqlRows)] == [[(2,)]] * 6


def test_two_queries_are_timed_in_turns(runner, databases):
    found = runner.time_pair_now(databases["sqlite"], "SELECT 1", "SELECT * FROM t", runs=3)
    assert isinstance(found, tuple) and all(seconds > 0 for seconds in found)


CELLS = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(), st.dates(),
        st.datetimes(), st.times(), st.timedeltas(), st.decimals(allow_nan=False), st.uuids(),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=6,
)  # fmt: skip


@pytest.mark.always
@given(st.lists(CELLS, max_size=4))
def test_every_value_comes_over_the_wire_as_it_was(cells):
    assert unpack(pack(row_to_wire(tuple(cells)))[HEADER_BYTES:]) == cells


@pytest.mark.parametrize("error", [ErrorClass.MEMORY, ErrorClass.OTHER])
def test_a_process_whose_memory_is_in_pieces_is_used_no_more(error: ErrorClass) -> None:
    process: Any = SimpleNamespace(kill=Mock())
    with pytest.raises(SqlError):
        SqlProcess._opened(process, {"error": [error, "no"]})
    assert process.kill.called is (error == ErrorClass.MEMORY)


@pytest.mark.parametrize(
    ("in_block", "verb", "asked", "settled"),
    [
        (True, "BEGIN", [], 0),
        (True, "COMMIT", ["SET CONSTRAINTS ALL IMMEDIATE", "RELEASE SAVEPOINT block"], 0),
        (True, "END", ["SET CONSTRAINTS ALL IMMEDIATE", "RELEASE SAVEPOINT block"], 0),
        (True, "ROLLBACK", [], 1),
        (False, "BEGIN", ["SAVEPOINT block"], 0),
        (False, "COMMIT", [], 0),
        (False, "ROLLBACK", [], 0),
    ],
)
def test_what_ends_a_block_does_so_only_in_one(in_block: bool, verb: str, asked: list[str], settled: int) -> None:
    execute = Mock()
    copy: Any = SimpleNamespace(
        _in_block=in_block, _block="block", _session=SimpleNamespace(execute=execute), _defer=Mock(), settle=Mock()
    )
    assert PrivatePostgres._controlled(copy, verb, "")
    assert [call.args[0] for call in execute.call_args_list] == asked
    assert copy.settle.call_count == settled

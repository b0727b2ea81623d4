"""Running snippets: what they see, how they fail, what they cost, and that the pool survives what goes wrong."""

import asyncio
import inspect
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pandas as pd
import psutil
import pytest

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.blocking import BlockingSandbox
from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.pool import Pool
from eval_pipeline.sandbox.python_sandbox import PythonSandbox
from eval_pipeline.sandbox.returned.outcomes import Measurement, Outcome, SnippetFailed, SnippetRan
from eval_pipeline.sandbox.returned.packed_tables import pack
from eval_pipeline.sandbox.returned.results import as_pandas
from eval_pipeline.sandbox.tiers import ENVIRONMENT, UNSAFE_TIER, NoSandboxError, Tier
from eval_pipeline.sandbox.zygote_process import ZygoteError, ZygoteProcess
from eval_pipeline_tests.fakes.foreign_work import reserved_by_threads
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.sandbox.campaign import JAILS, TITLES, tier_of, usable
from eval_pipeline_tests.sandbox.conftest import Boxes
from eval_pipeline_tests.services import no_jail

LIMITS = Limits(wall_s=5.0, memory_bytes=512 << 20)
TIERS_AND_NONE = [*TITLES, UNSAFE_TIER.title]
EXCEPTIONS = golden("sandbox_exceptions.yaml")


def value(outcome: Outcome) -> Any:
    assert isinstance(outcome, SnippetRan), outcome
    return as_pandas(outcome.result)


@pytest.mark.parametrize("title", TIERS_AND_NONE)
def test_a_snippet_sees_its_tables_and_leaves_its_result_on_every_tier(
    title: str, tmp_path: Path, boxes: Boxes
) -> None:
    sales, regions = tmp_path / "sales.csv", tmp_path / "regions.parquet"
    sales.write_text("region,amount\nnorth,1\nsouth,2\nnorth,4\n")
    pd.DataFrame({"region": ["north", "south"], "head": ["ann", "bo"]}).to_parquet(regions)
    notes = pd.DataFrame({"text": ["x", None]})
    code = "print('hello')\nresult = sales.merge(regions).groupby('head').amount.sum() + len(notes)"
    (outcome,) = boxes.run(code, title=title, tables={"sales": sales, "regions": regions, "notes": notes})
    assert (outcome.stdout, outcome.tier) == ("hello\n", tier_of(title).name)
    pd.testing.assert_series_equal(
        value(outcome), pd.Series([7, 4], name="amount", index=pd.Index(["ann", "bo"], name="head"))
    )


def test_the_only_table_is_df_too(boxes: Boxes) -> None:
    (outcome,) = boxes.run("result = int(df.a.sum() + t.a.sum())", tables={"t": pd.DataFrame({"a": [1, 2]})})
    assert value(outcome) == 6


FAILURES = [
    ("x = (", ErrorClass.SYNTAX, 1),
    ("x = 1\nx = = 2", ErrorClass.SYNTAX, 2),
    ("\nresult = pd.DataFrame({'a': [1]})['b']", ErrorClass.COLUMN, 2),
    ("def f():\n    return pd.DataFrame({'a': [1]}).query('b > 1')\nresult = f()", ErrorClass.COLUMN, 2),
    ("result = 'a' + 1", ErrorClass.TYPE, 1),
    ("result = [1][2]", ErrorClass.INDEX, 1),
    ("result = pd.nothing", ErrorClass.ATTRIBUTE, 1),
    ("result = int('x')", ErrorClass.VALUE, 1),
    ("result = 1 / 0", ErrorClass.VALUE, 1),
    ("x = 1", ErrorClass.OTHER, None),
    ("raise RuntimeError", ErrorClass.OTHER, 1),
    ("\n\nbytearray(8 << 30)", ErrorClass.MEMORY, 3),
    ("result = np.ones((1 << 16, 1 << 16))", ErrorClass.MEMORY, 1),
    ("import sys\nsys.exit(0)", ErrorClass.OTHER, 2),
    ("def f(): return f()\nf()", ErrorClass.OTHER, 1),
    ("raise type('E', (Exception,), {'__str__': lambda self: 1 / 0})", ErrorClass.OTHER, 1),
    ("#" * (Limits().code_bytes + 1), ErrorClass.SANDBOX, None),
    ("import socket\nsocket.socket()", ErrorClass.SANDBOX, 2),
    ("import os\nresult = os.system('ls')", ErrorClass.SANDBOX, 2),
    ("from os import popen\nresult = popen('ls').read()", ErrorClass.SANDBOX, 2),
]


def test_failures_have_their_class_and_line(boxes: Boxes) -> None:
    outcomes = boxes.run(*(code for code, _, _ in FAILURES))
    found = [(outcome.error_class, outcome.line) for outcome in outcomes if isinstance(outcome, SnippetFailed)]
    assert found == [(error_class, line) for _, error_class, line in FAILURES]
    (unclosed,) = boxes.run("x = 1\nresult = (")
    assert isinstance(unclosed, SnippetFailed)
    assert (unclosed.message, unclosed.line) == ("'(' was never closed", 2)


def test_exceptions_of_pandas_numpy_and_duckdb_have_their_class(boxes: Boxes) -> None:
    frame = pd.DataFrame({"n": [1, 2], "s": ["a", "b"]})
    outcomes = boxes.run(*(row["code"] for row in EXCEPTIONS), tables={"df": frame})
    for row, outcome in zip(EXCEPTIONS, outcomes, strict=True):
        assert isinstance(outcome, SnippetFailed), row
        assert (outcome.exception, outcome.error_class) == (row.get("type", outcome.exception), row["error_class"])
    assert {row["error_class"] for row in EXCEPTIONS} == {str(name) for name in ErrorClass}


def test_threads_reserve_little_of_the_memory_that_code_may_have(boxes: Boxes) -> None:
    """A crash of DuckDB's, which starts a few threads as it opens, where their heaps had used up the limit."""
    (outcome,) = boxes.run(f"{inspect.getsource(reserved_by_threads)}\nresult = reserved_by_threads()")
    assert value(outcome) < 256 << 20  # of which 64 MiB are stacks


def test_an_endless_loop_ends_at_the_limit_of_its_time(boxes: Boxes) -> None:
    (outcome,) = boxes.run("while True: pass", wall_s=0.5)
    assert isinstance(outcome, SnippetFailed)
    assert (outcome.error_class, outcome.message) == (ErrorClass.TIMEOUT, "no result within 0.5 s")


def test_the_same_code_has_the_same_result_in_every_zygote(boxes: Boxes) -> None:
    code = "result = [df.sample(3).index.tolist(), list({'a', 'b', 'c', 'd'}), float(np.random.rand())]"
    frame = pd.DataFrame({"a": range(100)})
    one, other = (boxes.run(code, title=title, tables={"t": frame})[0] for title in ("", UNSAFE_TIER.title))
    assert value(one) == value(other)


def test_a_table_that_cannot_be_read_is_an_error_of_the_caller(tmp_path: Path, boxes: Boxes) -> None:
    broken = tmp_path / "sales.parquet"
    broken.write_bytes(b"no parquet")
    for name, told in {"sales": "table 'sales' cannot be read as parquet", "my sales": "identifier"}.items():
        with pytest.raises(ValueError, match=told):
            boxes.run("result = 1", tables={name: broken})
    assert value(boxes.run("result = 1")[0]) == 1


def test_equal_tables_are_sent_once_and_changed_ones_again(tmp_path: Path) -> None:
    file, same = tmp_path / "sales.csv", tmp_path / "copy.csv"
    for path in (file, same):
        path.write_text("a\n1\n")
    known = pack({"t": file})
    assert known.key == pack({"t": file}).key == pack({"t": same}).key
    assert known.body == b"a\n1\n"
    assert pack({"u": file}).key != known.key != pack({"t": file, "u": file}).key
    frame = pd.DataFrame({"a": [1]})
    assert pack({"t": frame}).key == pack({"t": frame.copy()}).key != pack({"t": frame + 1}).key
    file.write_text("a\n1\n2\n")
    assert pack({"t": file}).key != known.key


def processes() -> set[int]:
    return {process.pid for process in psutil.Process().children(recursive=True)}


async def busy(box: PythonSandbox, code: str) -> "asyncio.Task[Outcome]":
    """A snippet that a zygote has begun with."""
    task = asyncio.create_task(box.run(code))
    while not (box._pool and any(zygote.snippets > 1 for zygote in box._pool._busy)):
        await asyncio.sleep(0.01)
    return task


@pytest.mark.parametrize("title", [*JAILS, UNSAFE_TIER.title])
def test_a_cancelled_run_leaves_no_process_and_the_next_one_its_own_result(title: str) -> None:
    if (why_not := tier_of(title).why_not()) is not None:
        raise no_jail(why_not)
    before = processes()

    async def cancelled() -> Outcome:
        async with PythonSandbox(LIMITS, zygotes=1, tiers=[tier_of(title)]) as box:
            task = await busy(box, "import time; time.sleep(4); result = 'late'")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await box.run("result = 'next'")

    assert value(asyncio.run(cancelled())) == "next"
    assert processes() <= before


def test_a_zygote_that_dies_leaves_no_zombie_and_is_replaced_whether_it_is_idle_or_at_work() -> None:
    before = processes()

    def kill() -> list[psutil.Process]:
        found = [psutil.Process(pid) for pid in processes() - before]
        assert found
        for end in (psutil.Process.suspend, psutil.Process.kill):  # all stop first, or one tells how another ended
            for one in found:
                with suppress(psutil.NoSuchProcess):
                    end(one)
        return found

    async def killed() -> list[Outcome]:
        async with PythonSandbox(LIMITS, zygotes=1, tiers=[usable()]) as box:
            outcomes = [await box.run("result = 1")]
            found, deadline = kill(), time.monotonic() + 60
            # The event loop stands still meanwhile, and cannot look after the process; a zombie counts as running.
            while any(one.is_running() for one in found) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert not [one for one in found if one.is_running()]
            outcomes.append(await box.run("result = 2"))
            task = await busy(box, "import time; time.sleep(0.2); result = 3")
            kill()
            outcomes.append(await task)
            await box._close()
            with pytest.raises(RuntimeError, match="not open"):
                await box.run("result = 1")
            return outcomes

    assert [value(outcome) for outcome in asyncio.run(killed())] == [1, 2, 3]


def test_zygotes_are_replaced_while_the_next_snippet_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    start = ZygoteProcess.start

    async def asked_for(tier: Tier, *codes: str) -> list[int]:
        """How many zygotes were asked for after each snippet, where the second starts after all of them only."""
        asked, started, ran = [], [], asyncio.Event()

        async def counted(*arguments: Any) -> ZygoteProcess:
            asked.append(arguments)
            if len(asked) > 1:
                await ran.wait()
            started.append(await start(*arguments))
            return started[-1]

        monkeypatch.setattr(ZygoteProcess, "start", counted)
        limits, found = Limits(wall_s=5.0, snippets_per_zygote=4), []
        async with PythonSandbox(limits, zygotes=1, tiers=[tier]) as box:  # its probe is a snippet too
            for code in codes:
                await box.run(code)
                await asyncio.sleep(0)  # lets a start begin
                found.append(len(asked))
            ran.set()
            while len(started) < 2:
                await asyncio.sleep(0.01)
            assert value(await box.run("result = 5")) == 5
            while started[0].alive:  # it is ended beside
                await asyncio.sleep(0.01)
            assert started[1].alive
        return found

    ending, held = "import os; os._exit(0)", usable()
    # A violation costs nothing where snippets have namespaces of their own.
    expected = [1, 1, 2, 2] if held.separate else [2, 2, 2, 2]
    assert asyncio.run(asked_for(held, ending, "result = 2", "result = 3", "result = 4")) == expected
    codes = ("result = 1 / 0", ending, "result = 3", "result = 4")
    assert asyncio.run(asked_for(UNSAFE_TIER, *codes)) == [1, 2, 2, 2]


def test_a_sandbox_belongs_to_the_event_loop_it_was_opened_in(boxes: Boxes) -> None:
    box = boxes.of()
    for other, told in ((PythonSandbox(LIMITS), "not open"), (box, "belongs to another event loop")):
        with pytest.raises(RuntimeError, match=told):
            asyncio.run(other.run("result = 1"))


def test_threads_share_a_blocking_sandbox() -> None:
    tier, found = usable(), {}
    with BlockingSandbox(LIMITS, zygotes=2) as box:
        threads = [
            threading.Thread(target=lambda n=n: found.update({n: value(box.run(f"result = {n}"))})) for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert box.tier == tier.name
    assert found == {n: n for n in range(8)}


def test_measuring_tells_costly_code_from_cheap_and_what_failed(boxes: Boxes) -> None:
    frame, box = pd.DataFrame({"a": range(1000)}), boxes.of()
    codes = ["result = sum(i * i for i in range(1_000_000))", "result = np.ones(8 << 20).sum()", "result = df.b"]
    found = boxes.wait(box.measure([*codes, "result = 1"], {"t": frame}, repeats=3))
    (spared,) = boxes.wait(box.measure(["result = 1"], repeats=3, negligible=Measurement(1.0, 1 << 30, 1)))
    slow, large, failed, cheap = found
    assert isinstance(failed, SnippetFailed) and failed.error_class is ErrorClass.ATTRIBUTE
    assert isinstance(slow, Measurement) and isinstance(large, Measurement)
    assert isinstance(cheap, Measurement) and isinstance(spared, Measurement)
    assert slow.seconds > 5 * cheap.seconds
    assert 60 << 20 < large.peak_bytes < 80 << 20
    assert cheap.peak_bytes < 8 << 20
    assert (slow.runs, cheap.runs, spared.runs) == (3, 3, 1)


LOOKS_AROUND = """
import sys
frame = sys._getframe()
seen = []
while frame := frame.f_back:
    seen += [name for name, held in frame.f_locals.items() if held is False]
result = 1 if seen else sum(i * i for i in range(1_000_000))
"""


def test_code_cannot_tell_that_it_is_measured_and_cannot_skip_its_work_now_and_then(boxes: Boxes) -> None:
    assert value(boxes.run(LOOKS_AROUND)[0]) > 1
    codes = [LOOKS_AROUND, "import time; result = time.time_ns()", "result = 1"]
    looking, fickle, idle = boxes.wait(boxes.of().measure(codes, repeats=2))
    assert isinstance(looking, Measurement) and isinstance(idle, Measurement)
    assert looking.seconds > 5 * idle.seconds
    assert isinstance(fickle, SnippetFailed)
    assert fickle.message == "its result is not the same each time it runs"


def test_without_anything_that_holds_code_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def enter(**arguments: Any) -> None:
        async with PythonSandbox(**arguments):
            pass

    monkeypatch.setenv(ENVIRONMENT, "chroot")
    with pytest.raises(NoSandboxError, match="allowed: bwrap, sandlock, unsafe"):
        asyncio.run(enter())
    broken = Tier(
        "bwrap", "bwrap (broken)", lambda: None, lambda scratch, limits: UNSAFE_TIER.launch("/nowhere", limits)
    )
    with pytest.raises(NoSandboxError, match=r"nothing on this machine can confine .*bwrap \(broken\): .*/nowhere"):
        asyncio.run(enter(tiers=[broken]))


@pytest.mark.parametrize("starts", [False, True])
def test_closing_while_zygotes_start_leaves_no_task_behind(starts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a task would be told of on standard error when the event loop ends."""
    started: list[Mock] = []

    async def start(tier: Tier, limits: Limits) -> Mock:
        started.append(Mock(stop=AsyncMock()))
        try:
            await asyncio.sleep(0 if starts else 3600)
        finally:
            if not starts:
                started.pop()
        return started[-1]

    async def closed() -> None:
        pool = Pool(UNSAFE_TIER, LIMITS)
        waiting = [asyncio.create_task(pool.take()) for _ in range(3)]
        await asyncio.sleep(0)
        await pool.close()
        for _ in range(9):
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert {type(one.exception() or one.result()) for one in waiting} <= {ZygoteError, Mock}
        assert all(one.stop.await_count for one in started)

    monkeypatch.setattr(ZygoteProcess, "start", start)
    asyncio.run(closed())


@pytest.mark.parametrize("closed", [True, False])
def test_who_waits_for_a_start_is_told_of_a_closed_pool_only_where_it_was_closed(closed: bool) -> None:
    async def wait() -> None:
        pool = Pool(UNSAFE_TIER, LIMITS)
        pool._closed = closed
        start = asyncio.create_task(asyncio.Event().wait())
        waiting = asyncio.create_task(pool._started(start))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        start.cancel()
        await waiting

    with pytest.raises(ZygoteError if closed else asyncio.CancelledError):
        asyncio.run(wait())

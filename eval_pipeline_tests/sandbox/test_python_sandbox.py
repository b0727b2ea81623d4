"""Running snippets: what they see, how they fail, what they cost, and that the pool survives what goes wrong."""

import asyncio
import inspect
import os
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox import (
    BlockingSandbox,
    Limits,
    Measurement,
    NoSandboxError,
    Outcome,
    PythonSandbox,
    SnippetFailed,
    SnippetRan,
)
from eval_pipeline.sandbox.results import as_pandas
from eval_pipeline.sandbox.tiers import ENVIRONMENT, TIERS, UNSAFE_TIER, Tier
from eval_pipeline.sandbox.zygote_process import ZygoteProcess
from eval_pipeline_tests.fakes.foreign_work import reserved_by_threads

LIMITS = Limits(wall_s=5.0, memory_bytes=512 << 20)
TITLES = [tier.title for tier in TIERS]


def first_that_holds() -> Tier:
    """The best tier here, or a skip."""
    reasons = {tier.title: tier.why_not() for tier in TIERS}
    usable = [tier for tier in TIERS if reasons[tier.title] is None]
    if not usable:
        pytest.skip(str(reasons))
    return usable[0]


def run(*codes: str, tables: Mapping[str, Any] | None = None, tier: Tier | None = None) -> list[Outcome]:
    """Runs snippets one after the other in one sandbox."""

    async def together() -> list[Outcome]:
        async with PythonSandbox(LIMITS, zygotes=1, tiers=[tier or first_that_holds()]) as box:
            return [await box.run(code, tables) for code in codes]

    return asyncio.run(together())


def value(outcome: Outcome) -> Any:
    assert isinstance(outcome, SnippetRan), outcome
    return as_pandas(outcome.result)


@pytest.mark.parametrize("title", [*TITLES, "unsafe"])
def test_a_snippet_sees_its_tables_and_leaves_its_result_on_every_tier(title: str, tmp_path: Path) -> None:
    (tier,) = [tier for tier in (*TIERS, UNSAFE_TIER) if tier.title == title]
    if (why_not := tier.why_not()) is not None:
        pytest.skip(why_not)
    sales, regions = tmp_path / "sales.csv", tmp_path / "regions.parquet"
    sales.write_text("region,amount\nnorth,1\nsouth,2\nnorth,4\n")
    pd.DataFrame({"region": ["north", "south"], "head": ["ann", "bo"]}).to_parquet(regions)
    notes = pd.DataFrame({"text": ["x", None]})
    code = "print('hello')\nresult = sales.merge(regions).groupby('head').amount.sum() + len(notes)"
    (outcome,) = run(code, tables={"sales": sales, "regions": regions, "notes": notes}, tier=tier)
    assert isinstance(outcome, SnippetRan), outcome
    assert (outcome.stdout, outcome.tier) == ("hello\n", tier.name)
    pd.testing.assert_series_equal(
        as_pandas(outcome.result), pd.Series([7, 4], name="amount", index=pd.Index(["ann", "bo"], name="head"))
    )


def test_the_only_table_is_df_too() -> None:
    assert value(run("result = int(df.a.sum() + sales.a.sum())", tables={"sales": pd.DataFrame({"a": [1, 2]})})[0]) == 6


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
]


def test_failures_have_their_class_and_line() -> None:
    outcomes = run(*(code for code, _, _ in FAILURES))
    found = [(outcome.error_class, outcome.line) for outcome in outcomes if isinstance(outcome, SnippetFailed)]
    assert found == [(error_class, line) for _, error_class, line in FAILURES]
    (unclosed,) = run("x = 1\nresult = (")
    assert isinstance(unclosed, SnippetFailed)
    assert (unclosed.message, unclosed.line) == ("'(' was never closed", 2)


def test_threads_reserve_little_of_the_memory_that_code_may_have() -> None:
    """A crash of DuckDB's, which starts a few threads as it opens, where their heaps had used up the limit."""
    (outcome,) = run(f"{inspect.getsource(reserved_by_threads)}\nresult = reserved_by_threads()")
    assert value(outcome) < 256 << 20  # of which 64 MiB are stacks


def test_an_endless_loop_ends_at_the_limit_of_its_time() -> None:
    limits = Limits(wall_s=0.5)

    async def loop() -> Outcome:
        async with PythonSandbox(limits, zygotes=1, tiers=[first_that_holds()]) as box:
            return await box.run("while True: pass")

    outcome = asyncio.run(loop())
    assert isinstance(outcome, SnippetFailed)
    assert (outcome.error_class, outcome.message) == (ErrorClass.TIMEOUT, "no result within 0.5 s")


def test_the_same_code_has_the_same_result_in_every_zygote() -> None:
    code = "result = [df.sample(3).index.tolist(), list({'a', 'b', 'c', 'd'}), float(np.random.rand())]"
    frame = pd.DataFrame({"a": range(100)})
    assert value(run(code, tables={"t": frame})[0]) == value(
        run("import os; os._exit(0)", code, tables={"t": frame})[1]
    )


def test_a_table_that_cannot_be_read_is_an_error_of_the_caller(tmp_path: Path) -> None:
    broken = tmp_path / "sales.parquet"
    broken.write_bytes(b"no parquet")

    async def both() -> Outcome:
        async with PythonSandbox(LIMITS, zygotes=1, tiers=[first_that_holds()]) as box:
            with pytest.raises(ValueError, match="table 'sales' cannot be read as parquet"):
                await box.run("result = 1", {"sales": broken})
            with pytest.raises(ValueError, match="identifier"):
                await box.run("result = 1", {"my sales": broken})
            return await box.run("result = 1")

    assert value(asyncio.run(both())) == 1


def processes() -> set[int]:
    return {process.pid for process in psutil.Process().children(recursive=True)}


@pytest.mark.parametrize("title", [*TITLES, "unsafe"])
def test_a_cancelled_run_leaves_no_process_and_the_next_one_its_own_result(title: str) -> None:
    (tier,) = [tier for tier in (*TIERS, UNSAFE_TIER) if tier.title == title]
    if (why_not := tier.why_not()) is not None:
        pytest.skip(why_not)
    before = processes()

    async def cancelled() -> Outcome:
        async with PythonSandbox(LIMITS, zygotes=1, tiers=[tier]) as box:
            task = asyncio.create_task(box.run("import time; time.sleep(4); result = 'late'"))
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await box.run("result = 'next'")

    assert value(asyncio.run(cancelled())) == "next"
    assert processes() <= before


def test_an_idle_zygote_that_is_killed_leaves_no_zombie() -> None:
    """Nobody calls meanwhile, so that neither the pool nor its event loop can look after it."""
    before = processes()
    with BlockingSandbox(LIMITS, zygotes=1) as box:
        box.run("result = 1")
        found = [psutil.Process(pid) for pid in processes() - before]
        assert found
        for one in found:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        deadline = time.monotonic() + 5
        while any(one.is_running() for one in found) and time.monotonic() < deadline:  # a zombie counts as running
            time.sleep(0.01)
        assert not [one for one in found if one.is_running()]


def test_a_zygote_that_dies_is_replaced_whether_it_is_idle_or_at_work() -> None:
    before = processes()

    async def kill() -> list[Outcome]:
        async with PythonSandbox(LIMITS, zygotes=1, tiers=[first_that_holds()]) as box:
            outcomes = [await box.run("result = 1")]
            for pid in processes() - before:
                os.kill(pid, signal.SIGKILL)
            outcomes.append(await box.run("result = 2"))
            task = asyncio.create_task(box.run("import time; time.sleep(1); result = 3"))
            await asyncio.sleep(0.3)
            for pid in processes() - before:
                os.kill(pid, signal.SIGKILL)
            outcomes.append(await task)
            return outcomes

    assert [value(outcome) for outcome in asyncio.run(kill())] == [1, 2, 3]


def test_zygotes_are_replaced_while_the_next_snippet_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    started, start = [], ZygoteProcess.start

    async def counted(*arguments: Any) -> ZygoteProcess:
        zygote = await start(*arguments)
        started.append(zygote)
        return zygote

    monkeypatch.setattr(ZygoteProcess, "start", counted)

    async def starts(tier: Tier, *codes: str, patient: bool = False) -> int:
        """How many were started when the codes had run, the first one included."""
        started.clear()
        limits = Limits(wall_s=5.0, snippets_per_zygote=3)
        async with PythonSandbox(limits, zygotes=1, tiers=[tier]) as box:  # its probe is a snippet too
            for code in codes:
                assert len(started) == 1 or patient
                await box.run(code)
                while patient and code != "result = 1" and len(started) == 1:
                    await asyncio.sleep(0.05)
            return len(started)

    held, unheld = first_that_holds(), UNSAFE_TIER
    # Nobody waits for the new one.
    assert asyncio.run(starts(held, "result = 1", "result = 2", "result = 3")) == 1
    assert asyncio.run(starts(held, "result = 1", "result = 2", "result = 1", patient=True)) == 2
    assert asyncio.run(starts(unheld, "result = 1 / 0", "import os; os._exit(0)", "result = 1")) == 1
    assert asyncio.run(starts(unheld, "import os; os._exit(0)", "result = 1", patient=True)) == 2


def test_a_violation_costs_nothing_where_snippets_have_namespaces_of_their_own() -> None:
    tier = first_that_holds()
    if not tier.separate:
        pytest.skip("no namespaces here")

    async def zygotes() -> set[int]:
        pids = set()
        before = {process.pid for process in psutil.Process().children()}
        async with PythonSandbox(LIMITS, zygotes=1, tiers=[tier]) as box:
            for code in ("result = 1", "import os; os._exit(0)", "result = 2"):
                await box.run(code)
                pids |= {process.pid for process in psutil.Process().children()}
        return pids - before

    assert len(asyncio.run(zygotes())) == 1


def test_a_sandbox_belongs_to_the_event_loop_it_was_opened_in() -> None:
    async def main() -> str:
        box = PythonSandbox(LIMITS, zygotes=1, tiers=[first_that_holds()])
        with pytest.raises(RuntimeError, match="not open"):
            await box.run("result = 1")
        async with box:
            said = await asyncio.to_thread(lambda: asyncio.run(elsewhere(box)))
        with pytest.raises(RuntimeError, match="not open"):
            await box.run("result = 1")
        return said

    async def elsewhere(box: PythonSandbox) -> str:
        with pytest.raises(RuntimeError) as error:
            await box.run("result = 1")
        return str(error.value)

    assert "belongs to another event loop" in asyncio.run(main())


def test_threads_share_a_blocking_sandbox() -> None:
    tier, found = first_that_holds(), {}
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


def test_measuring_tells_costly_code_from_cheap_and_what_failed() -> None:
    frame = pd.DataFrame({"a": range(1000)})
    codes = [
        "result = sum(i * i for i in range(3_000_000))",
        "result = np.ones(8 << 20).sum()",
        "result = df.b",
        "result = 1",
    ]

    async def measured() -> list[list[Measurement | SnippetFailed]]:
        async with PythonSandbox(LIMITS, zygotes=1, tiers=[first_that_holds()]) as box:
            all_runs = await box.measure(codes, {"t": frame}, repeats=3)
            return [all_runs, await box.measure(codes[-1:], repeats=3, negligible=Measurement(1.0, 1 << 30, 1))]

    (slow, large, failed, cheap), (spared,) = asyncio.run(measured())
    assert isinstance(failed, SnippetFailed)
    assert failed.error_class is ErrorClass.ATTRIBUTE
    assert isinstance(slow, Measurement)
    assert isinstance(large, Measurement)
    assert isinstance(cheap, Measurement)
    assert isinstance(spared, Measurement)
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
result = 1 if seen else sum(i * i for i in range(3_000_000))
"""


def test_code_cannot_tell_that_it_is_measured_and_cannot_skip_its_work_now_and_then() -> None:
    async def measured() -> list[Measurement | SnippetFailed]:
        async with PythonSandbox(LIMITS, zygotes=1, tiers=[first_that_holds()]) as box:
            whole = await box.run(LOOKS_AROUND)
            assert isinstance(whole, SnippetRan)
            assert whole.result["value"] > 1
            return await box.measure([LOOKS_AROUND, "import time; result = time.time_ns()", "result = 1"], repeats=2)

    looking, fickle, idle = asyncio.run(measured())
    assert isinstance(looking, Measurement)
    assert isinstance(idle, Measurement)
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

"""Who of the calls with one prefix goes first, and how long the others wait."""

import asyncio

import pytest

from eval_pipeline.providers.anthropic.prefix_gate import PrefixGate
from eval_pipeline_tests.fakes.virtual_time import in_virtual_time


async def settle() -> None:
    """Lets every task that can go on do so."""
    for _ in range(10):
        await asyncio.sleep(0)


class Calls:
    """Calls that a test lets begin and end."""

    def __init__(self, gate: PrefixGate) -> None:
        self.gate = gate
        self.sent: list[tuple[str, bool]] = []
        self._begins: dict[str, asyncio.Event] = {}
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, name: str, key: str = "prefix", size: int = 100) -> asyncio.Task[None]:
        self._begins[name], self._ends[name] = asyncio.Event(), asyncio.Event()
        self._tasks.append(task := asyncio.create_task(self._call(name, key, size)))
        return task

    async def finish(self, names: str) -> None:
        """Lets these end, after which all have."""
        for name in names:
            await self.end(name)
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        assert {type(error) for error in ended} <= {type(None), asyncio.CancelledError}

    async def begin(self, name: str) -> None:
        self._begins[name].set()
        await settle()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await settle()

    async def _call(self, name: str, key: str, size: int) -> None:
        async with self.gate.turn(key, size) as turn:
            self.sent.append((name, turn.leads))
            waits = [asyncio.ensure_future(event.wait()) for event in (self._begins[name], self._ends[name])]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                if self._begins[name].is_set():
                    self.gate.begun(key, turn)
                    await self._ends[name].wait()
            finally:
                for wait in waits:
                    wait.cancel()


@in_virtual_time
async def test_the_others_go_together_when_the_first_answer_begins() -> None:
    calls = Calls(PrefixGate())
    for name in "abc":
        calls.start(name)
    await settle()
    assert calls.sent == [("a", True)]
    await calls.begin("a")
    assert calls.sent == [("a", True), ("b", False), ("c", False)]
    await calls.finish("cab")


@in_virtual_time
async def test_a_prefix_that_is_cached_holds_nobody_up_until_it_has_gone() -> None:
    calls = Calls(PrefixGate(lasts_s=1.0))
    calls.start("a")
    await settle()
    await calls.begin("a")
    await calls.end("a")
    calls.start("b")
    await settle()
    await calls.end("b")
    await asyncio.sleep(1.05)
    calls.start("c"), calls.start("d")
    await settle()
    assert calls.sent == [("a", True), ("b", False), ("c", True)]
    await calls.begin("c")
    assert calls.sent[-1] == ("d", False)
    await calls.finish("cd")


@pytest.mark.parametrize("how", ["fails", "is cancelled"])
@in_virtual_time
async def test_when_the_first_gets_nowhere_the_next_one_leads(how: str) -> None:
    calls = Calls(PrefixGate())
    tasks = [calls.start(name) for name in "abc"]
    await settle()
    if how == "fails":
        await calls.end("a")
    else:
        tasks[0].cancel()
        await settle()
    assert calls.sent == [("a", True), ("b", True)]
    await calls.begin("b")
    assert calls.sent[2:] == [("c", False)]
    await calls.finish("bc")


@in_virtual_time
async def test_one_who_waits_may_be_cancelled() -> None:
    calls = Calls(PrefixGate())
    tasks = [calls.start(name) for name in "abc"]
    await settle()
    tasks[1].cancel()
    await calls.end("a")
    assert calls.sent == [("a", True), ("c", True)]
    await calls.finish("c")


@in_virtual_time
async def test_nobody_waits_longer_than_the_patience_lasts_over_all_who_lead() -> None:
    calls = Calls(PrefixGate(patience_s=1.0))
    for name in "abc":
        calls.start(name)
    await asyncio.sleep(0.3)
    await calls.end("a")
    assert calls.sent == [("a", True), ("b", True)]
    await asyncio.sleep(0.69)
    assert len(calls.sent) == 2
    await asyncio.sleep(0.02)
    assert calls.sent[2:] == [("c", False)]
    await calls.finish("bc")


@in_virtual_time
async def test_prefixes_do_not_wait_for_each_other() -> None:
    calls = Calls(PrefixGate())
    for name in "abc":
        calls.start(name, key=name)
    await settle()
    assert calls.sent == [("a", True), ("b", True), ("c", True)]
    await calls.finish("abc")


@in_virtual_time
async def test_sizes_that_were_not_cached_need_no_wait_and_larger_ones_do() -> None:
    calls = Calls(PrefixGate())
    calls.gate.not_cached(100)
    calls.gate.not_cached(50)
    for name, key, size in (("a", "prefix", 100), ("b", "prefix", 100), ("c", "long", 101), ("d", "long", 101)):
        calls.start(name, key, size)
    await settle()
    assert calls.sent == [("a", False), ("b", False), ("c", True)]
    await calls.finish("abcd")

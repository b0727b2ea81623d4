"""Who of the calls with one prefix goes first, and how long the others wait."""

import asyncio

import pytest

from eval_pipeline.providers.anthropic.prefix_gate import PrefixGate
from eval_pipeline_tests.fakes.virtual_time import run


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

    def start(self, name: str, key: str = "prefix", size: int = 100) -> asyncio.Task[None]:
        self._begins[name], self._ends[name] = asyncio.Event(), asyncio.Event()
        return asyncio.create_task(self._call(name, key, size))

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


def test_the_others_go_together_when_the_first_answer_begins() -> None:
    async def work() -> None:
        calls = Calls(PrefixGate())
        tasks = [calls.start(name) for name in "abc"]
        await settle()
        assert calls.sent == [("a", True)]
        await calls.begin("a")
        assert calls.sent == [("a", True), ("b", False), ("c", False)]
        for name in "cab":
            await calls.end(name)
        await asyncio.gather(*tasks)

    run(work())


def test_a_prefix_that_is_cached_holds_nobody_up_until_it_has_gone() -> None:
    async def work() -> None:
        calls = Calls(PrefixGate(lasts_s=1.0))
        tasks = [calls.start("a")]
        await settle()
        await calls.begin("a")
        await calls.end("a")
        tasks.append(calls.start("b"))
        await settle()
        await calls.end("b")
        await asyncio.sleep(1.05)
        tasks += [calls.start("c"), calls.start("d")]
        await settle()
        assert calls.sent == [("a", True), ("b", False), ("c", True)]
        await calls.begin("c")
        assert calls.sent[-1] == ("d", False)
        for name in "cd":
            await calls.end(name)
        await asyncio.gather(*tasks)

    run(work())


@pytest.mark.parametrize("how", ["fails", "is cancelled"])
def test_when_the_first_gets_nowhere_the_next_one_leads(how: str) -> None:
    async def work() -> None:
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
        for name in "bc":
            await calls.end(name)
        await asyncio.gather(*tasks, return_exceptions=True)

    run(work())


def test_one_who_waits_may_be_cancelled() -> None:
    async def work() -> None:
        calls = Calls(PrefixGate())
        tasks = [calls.start(name) for name in "abc"]
        await settle()
        tasks[1].cancel()
        await calls.end("a")
        assert calls.sent == [("a", True), ("c", True)]
        await calls.end("c")
        await asyncio.gather(*tasks, return_exceptions=True)

    run(work())


def test_nobody_waits_longer_than_the_patience_lasts_over_all_who_lead() -> None:
    async def work() -> None:
        calls = Calls(PrefixGate(patience_s=1.0))
        tasks = [calls.start(name) for name in "abc"]
        await asyncio.sleep(0.3)
        await calls.end("a")
        assert calls.sent == [("a", True), ("b", True)]
        await asyncio.sleep(0.69)
        assert len(calls.sent) == 2
        await asyncio.sleep(0.02)
        assert calls.sent[2:] == [("c", False)]
        for name in "bc":
            await calls.end(name)
        await asyncio.gather(*tasks)

    run(work())


def test_prefixes_do_not_wait_for_each_other() -> None:
    async def work() -> None:
        calls = Calls(PrefixGate())
        tasks = [calls.start(name, key=name) for name in "abc"]
        await settle()
        assert calls.sent == [("a", True), ("b", True), ("c", True)]
        for name in "abc":
            await calls.end(name)
        await asyncio.gather(*tasks)

    run(work())


def test_sizes_that_were_not_cached_need_no_wait_and_larger_ones_do() -> None:
    async def work() -> None:
        calls = Calls(PrefixGate())
        calls.gate.not_cached(100)
        calls.gate.not_cached(50)
        tasks = [calls.start("a"), calls.start("b"), calls.start("c", "long", 101), calls.start("d", "long", 101)]
        await settle()
        assert calls.sent == [("a", False), ("b", False), ("c", True)]
        for name in "abcd":
            await calls.end(name)
        await asyncio.gather(*tasks)

    run(work())

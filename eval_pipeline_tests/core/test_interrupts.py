import asyncio
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from typing import Any

import pytest

from eval_pipeline.core.system.interrupts import INTERRUPTS, TwiceInterruptedError, handlers_kept, run_interruptibly


class Interrupted(BaseException):
    """As Dagster's: neither an Exception nor one of those that asyncio knows."""


def raising(*_: Any) -> None:
    raise Interrupted


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def number(request: pytest.FixtureRequest) -> Iterator[int]:
    before = signal.signal(request.param, raising)
    yield request.param
    assert signal.signal(request.param, before) is raising  # it was put back


def test_a_signal_in_a_task_that_nobody_awaits_ends_the_loop(number: int) -> None:
    ended: list[str] = []

    async def unheard() -> None:
        os.kill(os.getpid(), number)

    async def main() -> None:
        task = asyncio.create_task(unheard())
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 20)
        finally:
            ended.append("cleaned up")
        await task

    with pytest.raises(Interrupted):
        run_interruptibly(main())
    assert ended == ["cleaned up"]


def test_a_signal_in_a_callback_ends_the_loop(number: int) -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), number)
        await asyncio.wait_for(asyncio.Event().wait(), 20)

    with pytest.raises(Interrupted):
        run_interruptibly(main())


@pytest.mark.parametrize(("times", "expected"), [(1, KeyboardInterrupt), (2, TwiceInterruptedError)])
def test_who_does_not_wait_for_the_end_is_told_from_who_does(times: int, expected: type[BaseException]) -> None:
    async def main() -> None:
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
            with suppress(asyncio.CancelledError):
                await asyncio.wait_for(asyncio.Event().wait(), 20)

    with handlers_kept():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt) as raised:
            run_interruptibly(main())
    assert raised.type is expected


def test_without_a_signal_it_is_asyncio_run(number: int) -> None:
    async def main(wrong: bool) -> int:
        if wrong:
            raise ValueError("wrong")
        return 7

    assert run_interruptibly(main(wrong=False)) == 7
    with pytest.raises(ValueError, match="wrong"):
        run_interruptibly(main(wrong=True))


@pytest.fixture(params=[signal.SIG_DFL, signal.SIG_IGN, raising], ids=["default", "ignored", "a function"])
def set_before(request: pytest.FixtureRequest) -> Iterator[Any]:
    with handlers_kept():
        for number in INTERRUPTS:
            signal.signal(number, request.param)
        yield request.param


def handlers() -> set[Any]:
    return {signal.getsignal(number) for number in INTERRUPTS}


@pytest.mark.parametrize("wrong", [False, True])
def test_handlers_are_afterwards_what_they_were(set_before: Any, wrong: bool) -> None:
    async def main() -> None:
        if wrong:
            raise ValueError

    with pytest.raises(ValueError) if wrong else nullcontext():
        run_interruptibly(main())
    assert handlers() == {set_before}
    with pytest.raises(ValueError) if wrong else nullcontext(), handlers_kept():
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGCHLD))
        asyncio.run(main())
    assert handlers() == {set_before}


def test_in_another_thread_handlers_are_nobodys_business(set_before: Any) -> None:
    async def main() -> int:
        return 7

    def work() -> int:
        with handlers_kept():
            return run_interruptibly(main())

    with ThreadPoolExecutor() as pool:
        assert pool.submit(work).result() == 7
    assert handlers() == {set_before}


def test_a_beat_that_says_so_ends_the_loop_as_a_signal_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eval_pipeline.core.system.interrupts.BEAT_S", 0.0)
    ended: list[str] = []

    async def main() -> None:
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 20)
        finally:
            ended.append("cleaned up")

    def interrupted_by(beats: Iterator[bool]) -> None:
        run_interruptibly(main(), lambda: next(beats))

    before = signal.signal(signal.SIGINT, raising)
    with pytest.raises(Interrupted):
        interrupted_by(iter([False, False, True]))
    signal.signal(signal.SIGINT, before)
    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):  # no signal reaches another thread
        pool.submit(interrupted_by, iter([True])).result()
    assert ended == ["cleaned up"] * 2

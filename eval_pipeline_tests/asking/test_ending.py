"""The end of asking: calls on their way are paid for and waited for, and nothing else is."""

import asyncio
import os
import signal

import pytest

from eval_pipeline.asking.answers import Counters
from eval_pipeline.asking.journal.port import Journal
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.interrupts import run_interruptibly
from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.providers.base import Call, CallError
from eval_pipeline.stages.attempts.model_calls import run_together
from eval_pipeline_tests.asking.callers import make_caller
from eval_pipeline_tests.fakes.scripted import Held, ScriptedProvider, make_call

TURN = make_call().turn_id


async def until_asked(provider: ScriptedProvider, calls: int) -> None:
    """Waits until so many calls are on their way."""
    while len(provider.asked) < calls:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("concurrency", [4, 2])
def test_calls_on_their_way_are_journalled_when_something_else_fails(journal: Journal, concurrency: int) -> None:
    """They are paid for, so the next run must find them; what has not been sent is not sent any more."""
    calls = [make_call(number) for number in range(6)]
    asked: list[str] = []

    async def run(fails: int | None) -> None:
        ending = asyncio.Event()
        provider = ScriptedProvider(default="answer" if fails is None else Held(ending))
        caller = make_caller(provider, journal, concurrency=concurrency)

        async def work(number: int, call: Call) -> None:
            if number == fails:
                await until_asked(provider, concurrency)
                raise StoreError("the scheduler is gone")
            await caller.ask(call)

        async def end() -> None:
            ending.set()
            await caller.end()

        try:
            await run_together([work(*item) for item in enumerate(calls)], end)
        finally:
            asked.extend(call.turn_id for call in provider.asked)

    with pytest.raises(StoreError, match="the scheduler is gone"):
        asyncio.run(run(fails=0))
    assert len(asked) == min(concurrency, len(calls) - 1)
    asyncio.run(run(fails=None))
    assert sorted(asked) == sorted(call.turn_id for call in calls)


@pytest.mark.parametrize("signals", [1, 2])
def test_the_first_interrupt_waits_for_calls_on_their_way_and_the_second_does_not(
    journal: Journal, caplog: pytest.LogCaptureFixture, signals: int
) -> None:
    ended = asyncio.Event()
    provider = ScriptedProvider(default=Held(ended))
    caller = make_caller(provider, journal, concurrency=2)
    calls = [make_call(number) for number in range(6)]

    async def interrupt() -> None:
        await until_asked(provider, 2)
        for _ in range(signals):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.1)
        ended.set()

    async def run() -> None:
        interrupting = asyncio.create_task(interrupt())

        async def work(call: Call) -> None:
            await caller.ask(call)

        await run_together([work(call) for call in calls], caller.end)
        await interrupting

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_interruptibly(run())
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(provider.asked) == 2
    kept = [journal.get(caller.key(call)) is not None for call in calls]
    assert kept == [signals == 1] * 2 + [False] * 4
    told = "waiting for the 2 calls on their way, which are paid for; another Ctrl-C stops at once"
    assert told in caplog.messages


async def test_the_end_does_not_wait_for_a_pause_between_two_tries(journal: Journal) -> None:
    later = CallError(CallErrorKind.RATE_LIMITED, "slow down", retryable=True, retry_after=50)
    caller = make_caller(ScriptedProvider(script={TURN: [later]}), journal, deadline_s=120)
    asking = asyncio.create_task(caller.ask(make_call()))
    while not caller.counters.calls:
        await asyncio.sleep(0)
    await caller.end()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert caller.counters.calls == 1


async def test_a_budget_is_given_back_by_a_call_that_may_not_start_any_more(journal: Journal) -> None:
    caller = make_caller(ScriptedProvider(), journal)
    await caller.end()
    with pytest.raises(asyncio.CancelledError):
        await caller.ask(make_call())
    assert caller.counters == Counters()
    assert journal.get(caller.key(make_call())) is None

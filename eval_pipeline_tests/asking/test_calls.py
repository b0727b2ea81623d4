"""Calls with journal, retries, limits and deadlines; in the end those on their way are waited for, nothing else."""

import asyncio
import os
import signal
import time
from datetime import date

import pytest

from eval_pipeline.asking.answers import Answered, Counters
from eval_pipeline.asking.journal.codec import decode_response, encode_response
from eval_pipeline.asking.journal.port import Journal
from eval_pipeline.asking.limits import AdaptiveLimit
from eval_pipeline.asking.retries import RetryPolicy
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.model import CallErrorKind, CallFailure, Response, Usage
from eval_pipeline.core.system.interrupts import run_interruptibly
from eval_pipeline.providers.base import Call, CallError, FatalCallError
from eval_pipeline.stages.attempts.model_calls import run_together
from eval_pipeline_tests.asking.callers import make_caller
from eval_pipeline_tests.fakes.scripted import Held, ScriptedProvider, Slow, make_call

BUSY = CallError(CallErrorKind.OVERLOADED, "busy", retryable=True)
TURN = make_call().turn_id


def test_an_answer_is_journalled_and_not_asked_for_again(journal: Journal) -> None:
    provider = ScriptedProvider(
        script={TURN: [Response("forty-two", usage=Usage(10, 2), latency_ms=5.0)]}, default=None
    )
    first = make_caller(provider, journal, today=lambda: date(2026, 11, 22))
    answer = asyncio.run(first.ask(make_call()))
    expected = Response("forty-two", usage=Usage(10, 2), latency_ms=5.0, asked_on="2026-11-22")
    assert answer == Answered(expected, from_journal=False)
    second = make_caller(provider, journal, today=lambda: date(2026, 12, 24))
    assert asyncio.run(second.ask(make_call())) == Answered(expected, from_journal=True)
    assert len(provider.asked) == 1
    assert first.counters == Counters(calls=1, answered=1, responses=1, tokens=12)
    assert second.counters == Counters(journal_hits=1)


def test_it_is_durable_before_it_is_used(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = make_caller(ScriptedProvider(), journal)
    seen: list[bytes | None] = []

    async def ask() -> None:
        await caller.ask(make_call())
        seen.append(journal.get(caller.key(make_call())))

    asyncio.run(ask())
    assert seen[0] is not None
    assert decode_response(seen[0]).text == "answer"

    async def broken(key: str, body: bytes) -> bool:
        raise StoreError("the disk is full")

    monkeypatch.setattr(journal, "append", broken)
    with pytest.raises(StoreError):
        asyncio.run(caller.ask(make_call(1)))


async def test_epoch_sample_number_and_prompt_make_another_question(journal: Journal) -> None:
    provider = ScriptedProvider()
    caller, tomorrow = make_caller(provider, journal), make_caller(provider, journal, "2026-11-23")
    calls = [make_call(), make_call(sample=1), make_call(number=1), make_call(text="other"), make_call(1)]
    for call in calls:
        await caller.ask(call)
    await tomorrow.ask(calls[0])
    assert len(provider.asked) == 6


def test_failures_that_pass_are_retried_and_counted(journal: Journal) -> None:
    provider = ScriptedProvider(script={TURN: [BUSY, BUSY, "at last"]}, default=None)
    caller = make_caller(provider, journal)
    answer = asyncio.run(caller.ask(make_call()))
    assert (answer.response.text, answer.response.retries) == ("at last", 2)
    assert caller.counters == Counters(
        calls=3, retries=2, answered=1, responses=1, retried={"overloaded": (2, f"{TURN}: busy")}
    )


def test_a_call_that_keeps_failing_is_told_and_not_journalled(journal: Journal) -> None:
    provider = ScriptedProvider(script={TURN: [BUSY] * 4})
    caller = make_caller(provider, journal)
    assert asyncio.run(caller.ask(make_call())) == CallFailure(CallErrorKind.OVERLOADED, "busy", 3)
    assert caller.counters == Counters(calls=4, retries=3, failures=1, retried={"overloaded": (3, f"{TURN}: busy")}), (
        "the last failure is final, and told as that"
    )
    assert isinstance(asyncio.run(caller.ask(make_call())), Answered)  # a restart asks again


def test_what_cannot_be_helped_is_asked_once(journal: Journal) -> None:
    provider = ScriptedProvider(script={TURN: [CallError(CallErrorKind.BAD_REQUEST, "too long")]}, default=None)
    answer = asyncio.run(make_caller(provider, journal).ask(make_call()))
    assert answer == CallFailure(CallErrorKind.BAD_REQUEST, "too long", 0)


def test_the_servers_wish_to_wait_is_honoured(journal: Journal) -> None:
    later = CallError(CallErrorKind.RATE_LIMITED, "slow down", retryable=True, retry_after=0.2)
    provider = ScriptedProvider(script={TURN: [later, "ok"]})
    started = time.monotonic()
    asyncio.run(make_caller(provider, journal).ask(make_call()))
    assert time.monotonic() - started >= 0.2


def test_the_deadline_ends_a_call_and_its_retries(journal: Journal) -> None:
    provider = ScriptedProvider(script={TURN: [BUSY, Slow(30)]}, default=None)
    caller = make_caller(provider, journal, deadline_s=0.1)
    assert asyncio.run(caller.ask(make_call())) == CallFailure(CallErrorKind.TIMEOUT, "no answer within 0.1 s", 1)
    assert provider.in_flight == 0


def test_a_pause_beyond_the_deadline_is_not_waited_for(journal: Journal) -> None:
    later = CallError(CallErrorKind.RATE_LIMITED, "slow down", retryable=True, retry_after=50)
    caller = make_caller(ScriptedProvider(script={TURN: [later]}), journal, deadline_s=20)
    assert asyncio.run(caller.ask(make_call())) == CallFailure(CallErrorKind.RATE_LIMITED, "slow down", 0)


def test_a_providers_own_fault_is_not_taken_for_the_deadline(journal: Journal) -> None:
    caller = make_caller(ScriptedProvider(script={TURN: [TimeoutError("unmapped")]}), journal)
    with pytest.raises(TimeoutError, match="unmapped"):
        asyncio.run(caller.ask(make_call()))


def test_a_fatal_error_ends_the_run(journal: Journal) -> None:
    caller = make_caller(ScriptedProvider(default=FatalCallError("the key is wrong")), journal)
    with pytest.raises(FatalCallError, match="the key is wrong"):
        asyncio.run(caller.ask(make_call()))
    assert not caller._under_way


async def test_calls_in_flight_are_bounded(journal: Journal) -> None:
    provider = ScriptedProvider(default=Slow(0.005))
    caller = make_caller(provider, journal, concurrency=3)
    await asyncio.gather(*(caller.ask(make_call(turn)) for turn in range(20)))
    assert provider.most_in_flight == 3


async def test_a_limit_may_be_shared_by_callers(journal: Journal) -> None:
    provider = ScriptedProvider(default=Slow(0.005))
    limit = AdaptiveLimit("endpoint", 2)
    callers = [make_caller(provider, journal, str(number), limit=limit) for number in range(3)]
    await asyncio.gather(*(caller.ask(make_call(turn)) for caller in callers for turn in range(4)))
    assert provider.most_in_flight == 2


def test_an_endpoint_that_pushes_back_lowers_the_limit_and_answers_raise_it(journal: Journal) -> None:
    limit = AdaptiveLimit("endpoint", 8)
    provider = ScriptedProvider(script={TURN: [BUSY, BUSY, "ok"]})
    caller = make_caller(provider, journal, limit=limit)
    asyncio.run(caller.ask(make_call()))
    assert limit.lowest == 2

    async def ask() -> None:
        await asyncio.gather(*(caller.ask(make_call(turn)) for turn in range(1, 60)))

    asyncio.run(ask())
    assert limit.limit == 8


async def test_equal_calls_at_once_share_one(journal: Journal) -> None:
    provider = ScriptedProvider(script={TURN: [Slow(0.02)]}, default=None)
    caller = make_caller(provider, journal)
    answers = list(await asyncio.gather(*(caller.ask(make_call()) for _ in range(5))))
    assert len(provider.asked) == 1
    assert len({answer.response.text for answer in answers}) == 1
    assert sorted(answer.from_journal for answer in answers) == [False, True, True, True, True]
    assert caller.counters == Counters(calls=1, answered=1, responses=1, journal_hits=4)


@pytest.mark.parametrize("error", [BUSY, FatalCallError("no"), StoreError("full")])
async def test_equal_calls_at_once_share_a_failure(journal: Journal, error: Exception) -> None:
    step = Slow(0.02, error)
    provider = ScriptedProvider(script={TURN: [step]}, default=None)
    caller = make_caller(provider, journal, retries=RetryPolicy(max_retries=0))
    told = list(await asyncio.gather(*(caller.ask(make_call()) for _ in range(3)), return_exceptions=True))
    assert len(provider.asked) == 1
    assert {type(one) for one in told} == {CallFailure if error is BUSY else type(error)}


async def test_who_shares_a_call_takes_it_over_when_the_asker_is_cancelled(journal: Journal) -> None:
    provider = ScriptedProvider(default=Slow(0.5))
    caller = make_caller(provider, journal)
    first = asyncio.create_task(caller.ask(make_call()))
    second = asyncio.create_task(caller.ask(make_call()))
    while not provider.asked:  # the look into the journal comes first
        await asyncio.sleep(0.001)
    first.cancel()
    answer = await asyncio.wait_for(second, 5)
    assert answer.response.text == "slow answer"
    assert len(provider.asked) == 2
    assert provider.in_flight == 0


def test_an_answer_that_another_process_recorded_first_is_the_one_used(journal: Journal) -> None:
    class Overtaken(ScriptedProvider):
        async def generate(self, call: Call) -> Response:
            await journal.append(caller.key(call), encode_response(Response("theirs")))
            return await super().generate(call)

    caller = make_caller(Overtaken(default="ours"), journal)
    answer = asyncio.run(caller.ask(make_call()))
    assert answer == Answered(Response("theirs"), from_journal=True)


def test_an_unreadable_entry_is_told(journal: Journal) -> None:
    caller = make_caller(ScriptedProvider(), journal)
    asyncio.run(journal.append(caller.key(make_call()), b"garbage"))
    with pytest.raises(StoreError, match=r"the journal .* has an unreadable entry.*doctor"):
        asyncio.run(caller.ask(make_call()))


async def test_progress_is_told_after_every_question(journal: Journal) -> None:
    told: list[int] = []
    provider = ScriptedProvider(script={make_call(1).turn_id: [CallError(CallErrorKind.REFUSED, "no")]})
    caller = make_caller(provider, journal, progress=lambda counters: told.append(counters.done))
    for turn in (0, 1, 0):
        await caller.ask(make_call(turn))
    assert told == [1, 2, 3]


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
    told = "waiting for the 2 calls on their way, which are paid for; Ctrl-C now stops at once"
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

import asyncio
import logging
from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest

from eval_pipeline.asking import limits
from eval_pipeline.asking.limits import AdaptiveLimit, shared_limit
from eval_pipeline.asking.retries import DeadlineError, RetryPolicy, within
from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import CallError

BUSY, LIMITED = CallErrorKind.OVERLOADED, CallErrorKind.RATE_LIMITED


def test_a_refusal_halves_the_limit_and_the_floor_is_one() -> None:
    limit = AdaptiveLimit("x", 10)
    seen = []
    for kind in (LIMITED, BUSY, LIMITED, LIMITED, LIMITED):
        limit.failed(kind, limit.began())
        seen.append(limit.limit)
    assert seen == [5, 2, 1, 1, 1]
    assert limit.lowest == 1


@pytest.mark.parametrize("kind", sorted(set(CallErrorKind) - {BUSY, LIMITED}))
def test_failures_that_say_nothing_of_load_change_nothing(kind: CallErrorKind) -> None:
    limit = AdaptiveLimit("x", 10)
    limit.failed(kind, limit.began())
    assert limit.limit == 10


def test_calls_that_were_under_way_together_cut_once() -> None:
    limit = AdaptiveLimit("x", 64)
    together = [limit.began() for _ in range(64)]
    for began in together:
        limit.failed(LIMITED, began)
    assert limit.limit == 32
    limit.failed(LIMITED, limit.began())
    assert limit.limit == 16


def test_the_limit_grows_by_one_in_as_many_successes_as_it_has_and_stops_at_the_most() -> None:
    limit = AdaptiveLimit("x", 8)
    limit.failed(LIMITED, limit.began())
    assert limit.limit == 4
    for _ in range(4):
        limit.succeeded()
    assert limit.limit == 4  # 1/4 + 1/4.25 + … is a little less than one
    limit.succeeded()
    assert limit.limit == 5
    for _ in range(1000):
        limit.succeeded()
    assert limit.limit == 8
    assert limit.lowest == 4


def test_falls_and_recoveries_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    limit = AdaptiveLimit("somewhere", 8)
    with caplog.at_level(logging.INFO, limits.__name__):
        limit.failed(LIMITED, limit.began())
        limit.failed(BUSY, limit.began())
        for _ in range(200):
            limit.succeeded()
    assert caplog.messages == [
        "somewhere: the limit of calls in flight falls from 8 to 4 (rate_limited)",
        "somewhere: the limit of calls in flight falls from 4 to 2 (overloaded)",
        "somewhere: the limit of calls in flight rises from 2 to 4 (calls succeed again)",
        "somewhere: the limit of calls in flight rises from 4 to 8 (calls succeed again)",
    ]


class Meter:
    """Counts what is in flight."""

    def __init__(self, limit: AdaptiveLimit) -> None:
        self.limit, self.now, self.most, self.order = limit, 0, 0, list[int]()

    async def work(self, number: int, seconds: float = 0.002) -> None:
        async with self.limit:
            self.order.append(number)
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(seconds)
            self.now -= 1


async def test_calls_in_flight_are_bounded_and_let_in_in_order() -> None:
    meter = Meter(AdaptiveLimit("x", 3))
    await asyncio.gather(*(meter.work(number) for number in range(20)))
    assert meter.most == 3
    assert meter.order == list(range(20))


async def test_nobody_is_let_in_over_a_limit_that_fell_and_waiters_profit_from_one_that_rises() -> None:
    limit = AdaptiveLimit("x", 4)
    for _ in range(4):
        await limit.enter()
    limit.failed(LIMITED, limit.began())
    limit.failed(LIMITED, limit.began())
    assert limit.limit == 1
    waiting = [asyncio.create_task(limit.enter()) for _ in range(4)]
    let_in = []
    for _ in range(4):  # those of before leave: the first three make no room
        limit.leave()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        let_in.append(sum(task.done() for task in waiting))
    for _ in range(20):
        limit.succeeded()
    await asyncio.wait_for(asyncio.gather(*waiting), 5)
    assert let_in == [0, 0, 0, 1]


def test_a_cancelled_waiter_gives_its_place_on() -> None:
    limit = AdaptiveLimit("x", 1)
    meter = Meter(limit)

    async def work() -> None:
        async with limit:
            tasks = [asyncio.create_task(meter.work(number)) for number in range(3)]
            await asyncio.sleep(0)
            tasks[0].cancel()  # while it waits
            await asyncio.sleep(0)
        # The place went to the second at once; it is cancelled before it could run.
        tasks[1].cancel()
        await asyncio.wait_for(tasks[2], 5)

    asyncio.run(work())
    assert meter.order == [2]
    asyncio.run(asyncio.wait_for(meter.work(9), 5))


async def test_a_waiter_that_is_cancelled_as_a_place_comes_free_is_passed_over() -> None:
    limit = AdaptiveLimit("x", 1)
    async with limit:
        tasks = [asyncio.create_task(limit.enter()) for _ in range(2)]
        await asyncio.sleep(0)
        tasks[0].cancel()
    told = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
    assert [type(one) for one in told] == [asyncio.CancelledError, type(None)]


def test_what_was_learned_survives_the_event_loop() -> None:
    limit = AdaptiveLimit("x", 8)
    limit.failed(LIMITED, limit.began())
    for _ in range(2):
        meter = Meter(limit)

        async def work(meter: Meter = meter) -> None:
            await asyncio.gather(*(meter.work(number) for number in range(12)))

        asyncio.run(work())
        assert meter.most == 4


def test_one_limit_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_limits", {})

    def version(name: str, provider: str = "p", concurrency: int = 8, **options: str) -> ModelVersion:
        return ModelVersion(name=name, provider=provider, concurrency=concurrency, options=dict(options))

    one = shared_limit(version("a"))
    assert shared_limit(version("b")) is one
    assert shared_limit(version("c", provider="q")) is not one
    assert shared_limit(version("d", base_url="http://here")) is not one
    one.failed(LIMITED, one.began())
    assert shared_limit(version("e")).limit == 4


def test_a_step_with_another_most_keeps_what_was_learned_below_it() -> None:
    limit = AdaptiveLimit("x", 8)
    limit.start(16)
    assert limit.limit == 16
    limit.failed(LIMITED, limit.began())
    limit.failed(LIMITED, limit.began())
    limit.start(12)
    assert (limit.limit, limit.lowest) == (4, 4)
    limit.start(2)
    assert (limit.limit, limit.lowest) == (2, 2)


REFUSED = CallError(CallErrorKind.OVERLOADED, "busy", retryable=True)


def asked_to_wait(seconds: float) -> CallError:
    return CallError(CallErrorKind.RATE_LIMITED, "slow down", retryable=True, retry_after=seconds)


def test_pauses_double_up_to_the_longest() -> None:
    policy = RetryPolicy(max_retries=8, jitter=0.0)
    assert [policy.pause(REFUSED, made, Random(0)) for made in range(9)] == [1, 2, 4, 8, 16, 30, 30, 30, None]


def test_what_cannot_be_helped_is_not_retried() -> None:
    assert RetryPolicy().pause(CallError(CallErrorKind.BAD_REQUEST, "no"), 0, Random(0)) is None
    assert RetryPolicy(max_retries=0).pause(REFUSED, 0, Random(0)) is None


@pytest.mark.parametrize(("told", "least"), [(7.0, 7.0), (0.0, 0.0), (-3.0, 0.0), (3600.0, 60.0)])
def test_the_servers_own_wish_goes_first_up_to_a_cap(told: float, least: float) -> None:
    policy = RetryPolicy()
    for seed in range(50):
        pause = policy.pause(asked_to_wait(told), 3, Random(seed))
        assert pause is not None
        assert least <= pause <= least * 1.25


def test_jitter_spreads_the_callers() -> None:
    pauses = [RetryPolicy().pause(REFUSED, 2, Random(seed)) for seed in range(50)]
    assert len(set(pauses)) == 50
    assert all(pause is not None and 3.0 <= pause <= 4.0 for pause in pauses)


def run_within(seconds: float, coroutine: Coroutine[Any, Any, Any]) -> Any:
    async def run() -> Any:
        return await within(asyncio.get_running_loop().time() + seconds, coroutine)

    return asyncio.run(run())


async def several_waits() -> str:
    said = []
    for number in range(3):
        await asyncio.sleep(0.001 * number)
        said.append(await asyncio.to_thread(str, number))
    return "".join(said)


async def at_once(result: Any) -> Any:
    if isinstance(result, Exception):
        raise result
    return result


async def later(result: Any) -> Any:
    await asyncio.sleep(0)
    return await at_once(result)


@pytest.mark.parametrize("coroutine", [at_once("012"), later("012"), several_waits()])
def test_what_is_done_in_time_is_returned(coroutine: Coroutine[Any, Any, Any]) -> None:
    assert run_within(5, coroutine) == "012"


@pytest.mark.parametrize("answer", [at_once, later])
@pytest.mark.parametrize("error", [ValueError("own"), TimeoutError("own")])
def test_the_coroutines_own_errors_come_through(answer: Any, error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        run_within(5, answer(error))


def test_the_deadline_cancels_what_still_waits() -> None:
    ended = []

    async def endless() -> None:
        try:
            await asyncio.sleep(0.001)
            await asyncio.sleep(30)
        finally:
            ended.append("cleaned up")

    with pytest.raises(DeadlineError):
        run_within(0.02, endless())
    assert ended == ["cleaned up"]


def test_what_needs_no_waiting_is_done_even_after_the_deadline() -> None:
    assert run_within(-1, at_once("done")) == "done"
    with pytest.raises(DeadlineError):
        run_within(-1, asyncio.sleep(30))


async def test_a_coroutine_may_catch_a_cancellation_at_its_first_wait() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            return "saved"
        return "slept"

    task = asyncio.create_task(within(asyncio.get_running_loop().time() + 20, stubborn()))
    await asyncio.sleep(0)
    task.cancel()
    assert (await task) == "saved"


def test_timeouts_inside_work_as_ever() -> None:
    async def own_timeout() -> str:
        try:
            async with asyncio.timeout(0.005):
                await asyncio.sleep(30)
        except TimeoutError:
            return "gave up by itself"
        return "slept"

    assert run_within(5, own_timeout()) == "gave up by itself"

import asyncio
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.asking.budgets import NOTHING, Amount, Budget, most, most_input_tokens
from eval_pipeline.core.model import CallErrorKind, CallFailure, Response, Usage
from eval_pipeline.core.model_versions import ModelVersion, Price
from eval_pipeline.providers.prices import has_price
from eval_pipeline_tests.fakes.scripted import make_call

DAY = date(2026, 11, 22)
PRICE = Price(input=1.0, output=2.0, cache_write=1.25)


def make_version(**settings: Any) -> ModelVersion:
    return ModelVersion(**{"name": "v", "provider": "scripted", "max_tokens": 100, "price": PRICE, **settings})


def make_budget(before: Amount = NOTHING, reached: bool = False, **settings: Any) -> Budget:
    return Budget(make_version(**settings), before, reached=reached, today=lambda: DAY)


def answer(tokens_in: int | None, tokens_out: int | None, **more: Any) -> Response:
    return Response("x", usage=Usage(tokens_in, tokens_out), asked_on=DAY.isoformat(), **more)


def test_the_most_is_a_token_a_byte_and_the_dearer_of_reading_and_writing_a_cache() -> None:
    call = make_call(text="é" * 10, schema={"type": "object"})
    # "Answer." and 20 bytes, the schema's 17, 16 a message, 512 a call
    assert most_input_tokens(call) == 7 + 20 + 17 + 32 + 512
    found = most(make_version(), call, DAY.isoformat())
    assert found.tokens == 588 + 100
    assert found.usd == pytest.approx((588 * 1.25 + 100 * 2) / 1e6)
    half = most(make_version(), call, DAY.isoformat(), batch=True)
    assert half.usd == pytest.approx(found.usd / 2)
    assert most(make_version(price=None), call, DAY.isoformat()).usd is None


def test_without_limits_nothing_is_reserved_and_spending_is_counted() -> None:
    budget = make_budget()
    assert asyncio.run(budget.reserve(make_call())) is NOTHING
    budget.settle(NOTHING, answer(1000, 50))
    budget.settle(NOTHING, answer(1000, 50, batch=True))
    budget.settle(NOTHING, answer(1000, 50, usd=0.5))
    budget.settle(NOTHING, CallFailure(CallErrorKind.OVERLOADED, "busy"))
    assert budget.tokens == 3150
    assert budget.usd == pytest.approx(0.0011 + 0.00055 + 0.5)
    unpriced = make_budget(price=None)
    unpriced.settle(NOTHING, answer(1000, 50))
    assert (unpriced.tokens, unpriced.usd) == (1050, None)


@pytest.mark.parametrize(
    ("outcome", "spent"),
    [
        (None, 0),
        (CallFailure(CallErrorKind.RATE_LIMITED, "later"), 0),
        (CallFailure(CallErrorKind.BAD_REQUEST, "no"), 0),
        (CallFailure(CallErrorKind.TIMEOUT, "no answer"), 1),
        (CallFailure(CallErrorKind.CONNECTION, "broken"), 1),
        (CallFailure(CallErrorKind.BAD_RESPONSE, "garbage"), 1),
        (answer(None, None), 1),
    ],
)
def test_what_may_have_been_charged_counts_with_the_most(outcome: Response | CallFailure | None, spent: int) -> None:
    budget = make_budget(max_tokens_total=10_000)
    reserved = asyncio.run(budget.reserve(make_call()))
    budget.settle(reserved, outcome)
    assert budget.tokens == spent * reserved.tokens
    assert (budget.usd or 0.0) == spent * (reserved.usd or 0.0)


async def test_a_call_that_does_not_fit_waits_for_those_in_flight_and_goes_when_they_cost_less() -> None:
    one = most(make_version(), make_call(), DAY.isoformat()).tokens
    budget = make_budget(max_tokens_total=2 * one + 10)
    first, second = await budget.reserve(make_call()), await budget.reserve(make_call())
    third = asyncio.create_task(budget.reserve(make_call()))
    await asyncio.sleep(0)
    waited = [third.done()]
    assert first and second
    budget.settle(first, answer(5, 5))
    await asyncio.sleep(0)
    waited.append((await third) is not None)
    assert waited == [False, True]
    assert not budget.reached


async def test_when_nothing_is_in_flight_a_call_that_does_not_fit_is_refused_and_so_is_every_other() -> None:
    one = most(make_version(), make_call(), DAY.isoformat()).tokens
    budget = make_budget(max_tokens_total=2 * one - 1)
    first = await budget.reserve(make_call())
    assert first
    waiting = [asyncio.create_task(budget.reserve(make_call())) for _ in range(3)]
    await asyncio.sleep(0)
    assert not budget.reached
    budget.settle(first, answer(one, 0))
    told = await asyncio.gather(*waiting)
    assert [*told, await budget.reserve(make_call(text=""))] == [None] * 4
    assert budget.reached
    assert budget.tokens == one


def test_dollars_hold_as_tokens_do_and_need_a_price() -> None:
    one = most(make_version(), make_call(), DAY.isoformat()).usd or 0
    assert asyncio.run(make_budget(max_cost_usd=one * 0.999).reserve(make_call())) is None
    assert asyncio.run(make_budget(max_cost_usd=one * 1.001).reserve(make_call())) is not None
    assert asyncio.run(make_budget(max_cost_usd=one * 0.6).reserve(make_call(), batch=True)) is not None
    assert asyncio.run(make_budget(max_cost_usd=100, price=None).reserve(make_call())) is None


def test_it_goes_on_from_what_earlier_steps_spent() -> None:
    one = most(make_version(), make_call(), DAY.isoformat()).tokens
    assert asyncio.run(make_budget(Amount(1, None), max_tokens_total=one).reserve(make_call())) is None
    dollars = Amount(0, 1.0)
    assert asyncio.run(make_budget(dollars, max_cost_usd=1.0).reserve(make_call())) is None
    assert asyncio.run(make_budget(dollars, max_cost_usd=2.0).reserve(make_call())) is not None
    assert asyncio.run(make_budget(reached=True, max_tokens_total=100 * one).reserve(make_call())) is None


async def test_a_cancelled_call_leaves_nothing_reserved() -> None:
    one = most(make_version(), make_call(), DAY.isoformat()).tokens
    budget = make_budget(max_tokens_total=one)
    first = await budget.reserve(make_call())
    assert first
    waiting, granted = (asyncio.create_task(budget.reserve(make_call())) for _ in range(2))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    budget.settle(first, None)  # grants the other one, which is cancelled before it runs
    granted.cancel()
    await asyncio.sleep(0)
    assert (await budget.reserve(make_call())) is not None


@pytest.mark.parametrize("refused", [True, False])
async def test_a_waiter_that_is_cancelled_as_money_comes_free_is_passed_over(refused: bool) -> None:
    one = most(make_version(), make_call(), DAY.isoformat()).tokens
    budget = make_budget(max_tokens_total=one)
    first = await budget.reserve(make_call())
    assert first
    cancelled, other = (asyncio.create_task(budget.reserve(make_call())) for _ in range(2))
    await asyncio.sleep(0)
    cancelled.cancel()
    budget.settle(first, answer(1, 0) if refused else None)
    assert ((await asyncio.wait_for(other, 5)) is None) is refused


def of_application(**limits: Any) -> Budget:
    return make_budget(provider="http", price=None, **limits)


async def test_of_an_application_one_call_is_made_alone_and_each_later_one_reserves_what_the_dearest_took() -> None:
    budget = of_application(max_cost_usd=1.0)
    # 1: alone. 0.9 are left: 7 in flight reserve 0.1 each. The next tells 0.3: 0.6 are left, the 6 in flight stay …
    tasks = [asyncio.create_task(budget.reserve(make_call())) for _ in range(8)]
    let_in = []
    for usd in (0.1, 0.3, 0.2):
        await asyncio.sleep(0)
        let_in.append(sum(task.done() for task in tasks))
        done = next(task for task in tasks if task.done())
        tasks.remove(done)
        reserved = done.result()
        assert reserved
        budget.settle(reserved, Response("x", usd=usd))
    await asyncio.sleep(0)
    assert [*let_in, sum(task.done() for task in tasks)] == [1, 7, 6, 5]
    assert budget.usd == pytest.approx(0.6)


async def test_of_an_application_the_budget_is_reached_when_the_dearest_call_does_not_fit() -> None:
    budget = of_application(max_tokens_total=1000, max_cost_usd=1.0)
    made = []
    for _ in range(5):
        reserved = await budget.reserve(make_call())
        made.append(reserved is not None)
        if reserved is not None:
            budget.settle(reserved, answer(200, 100, usd=0.001))
    assert made == [True, True, True, False, False]
    assert budget.reached
    assert budget.tokens == 900


def test_what_an_application_does_not_tell_counts_as_its_dearest_call() -> None:
    budget = of_application(max_cost_usd=1.0)

    async def ask(outcome: Response | CallFailure) -> None:
        reserved = await budget.reserve(make_call())
        assert reserved
        budget.settle(reserved, outcome)

    asyncio.run(ask(CallFailure(CallErrorKind.TIMEOUT, "no answer")))
    asyncio.run(ask(answer(None, None)))
    assert budget.usd is None  # nothing is known yet
    for outcome in (answer(None, None, usd=0.25), answer(None, None), CallFailure(CallErrorKind.TIMEOUT, "no answer")):
        asyncio.run(ask(outcome))
    assert budget.usd == pytest.approx(0.75)
    assert asyncio.run(of_application(before=Amount(0, 1.0), max_cost_usd=1.0).reserve(make_call())) is None


@settings(max_examples=60, deadline=None)
@given(
    limit=st.integers(1, 20_000),
    costs=st.lists(st.tuples(st.integers(0, 500), st.integers(0, 100)), min_size=1, max_size=40),
)
def test_the_limit_is_never_exceeded(limit: int, costs: list[tuple[int, int]]) -> None:
    budget = make_budget(max_tokens_total=limit)
    asked: list[int] = []

    async def work(cost: tuple[int, int]) -> None:
        reserved = await budget.reserve(make_call())
        if reserved is None:
            return
        assert not budget.reached
        await asyncio.sleep(0)
        asked.append(sum(cost))
        budget.settle(reserved, answer(*cost))

    async def run() -> None:
        await asyncio.gather(*(work(cost) for cost in costs))

    asyncio.run(run())
    assert budget.tokens == sum(asked) <= limit
    assert budget.reached == (len(asked) < len(costs))


def test_whether_a_price_is_known() -> None:
    assert has_price(make_version())
    assert has_price(make_version(price=None, priced_as="claude-sonnet-4-5"))
    assert not has_price(make_version(price=None, model="no-such-model"))

"""Calls at endpoints that break off or cannot be reached: what the budget counts, and when a run gives up."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.asking.answers import Answer, Answered
from eval_pipeline.asking.budgets import most
from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.journal.port import Journal
from eval_pipeline.asking.journal.sqlite import SqliteJournal
from eval_pipeline.asking.retries import RetryPolicy
from eval_pipeline.core.model import CallErrorKind, CallFailure, Response, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import CallError, Environment, FatalCallError
from eval_pipeline.providers.registry import create
from eval_pipeline.stages.attempts.model_calls import run_together
from eval_pipeline_tests.fakes.scripted import ScriptedProvider, Slow, Step, make_call

BROKEN = CallError(CallErrorKind.CONNECTION, "cut off", retryable=True)
REFUSED = CallError(CallErrorKind.CONNECTION, "refused", retryable=True, sent=False)
BUSY = CallError(CallErrorKind.OVERLOADED, "busy", retryable=True)
ANSWER = Response("x", usage=Usage(10, 2))
TURN = make_call().turn_id
NOWHERE = "http://127.0.0.1:9"  # the discard port: nobody listens there


def make_version(**settings: Any) -> ModelVersion:
    return ModelVersion(**{"name": "v", "provider": "scripted", "model": "m", "max_tokens": 100, **settings})


def most_tokens() -> int:
    return most(make_version(), make_call(), "2026-11-22").tokens


def make_caller(provider: Any, journal: Journal, max_retries: int = 10, **settings: Any) -> Caller:
    retries = RetryPolicy(max_retries=max_retries, first_pause_s=0.001, longest_pause_s=0.002)
    return Caller(provider, journal, make_version(**settings), retries=retries)


def ask_all(caller: Caller, count: int) -> list[Answer]:
    async def ask() -> list[Answer]:
        return list(await asyncio.gather(*(caller.ask(make_call(turn)) for turn in range(count))))

    return asyncio.run(asyncio.wait_for(ask(), 30))


@pytest.mark.parametrize(
    ("failure", "charged"), [(BROKEN, True), (REFUSED, False), (BUSY, False)], ids=["broken", "refused", "busy"]
)
def test_every_try_that_may_have_been_charged_counts_with_its_most(
    journal: Journal, failure: CallError, charged: bool
) -> None:
    caller = make_caller(ScriptedProvider(script={TURN: [failure] * 8 + [ANSWER]}), journal, max_tokens_total=10**6)
    (answer,) = ask_all(caller, 1)
    assert isinstance(answer, Answered) and answer.response.retries == 8
    assert caller.counters.tokens == (8 * most_tokens() if charged else 0) + 12


def test_no_try_is_made_that_could_exceed_the_budget(journal: Journal) -> None:
    provider = ScriptedProvider(script={TURN: [BROKEN] * 20})
    caller = make_caller(provider, journal, max_tokens_total=3 * most_tokens() + most_tokens() // 2)
    (answer,) = ask_all(caller, 1)
    assert answer == CallFailure(
        CallErrorKind.BUDGET, "not asked again after a failure (cut off): the budget of the run was reached", 2
    )
    assert (len(provider.asked), caller.counters.tokens, caller.counters.refused) == (3, 3 * most_tokens(), 1)


def test_a_question_that_runs_into_its_deadline_counts_once(journal: Journal) -> None:
    provider = ScriptedProvider(script={TURN: [BUSY, Slow(30)]})
    caller = make_caller(provider, journal, max_tokens_total=10**6, deadline_s=0.1)
    ask_all(caller, 1)
    assert caller.counters.tokens == most_tokens()


@pytest.mark.parametrize("concurrency", [1, 2, 8])
def test_retries_wait_for_money_without_keeping_it_from_those_who_have_it(journal: Journal, concurrency: int) -> None:
    # One call fits at a time, what was charged for failures aside; each fails once before it is answered.
    script: dict[str, list[Step]] = {make_call(turn).turn_id: [BUSY, ANSWER] for turn in range(8)}
    caller = make_caller(
        ScriptedProvider(script=script), journal, concurrency=concurrency, max_tokens_total=2 * most_tokens()
    )
    assert all(isinstance(answer, Answered) for answer in ask_all(caller, 8))
    assert caller.counters.tokens == 8 * 12


def test_an_endpoint_that_nobody_can_reach_ends_the_run_with_one_sentence(journal: Journal) -> None:
    provider = ScriptedProvider(default=REFUSED)
    caller = make_caller(provider, journal, max_retries=1000, concurrency=4, options={"base_url": NOWHERE})
    with pytest.raises(FatalCallError) as told:
        ask_all(caller, 20)
    assert str(told.value) == (
        "model version 'v': provider 'scripted' cannot be reached at http://127.0.0.1:9 "
        "(4 questions, each tried 3 times; the last one: refused)"
    )
    assert len(provider.asked) < 20  # one may be at its fourth try


def test_three_questions_are_tried_at_least(journal: Journal) -> None:
    caller = make_caller(ScriptedProvider(default=REFUSED), journal, max_retries=4, concurrency=1)
    assert [type(answer) for answer in ask_all(caller, 2)] == [CallFailure] * 2
    with pytest.raises(FatalCallError, match="3 questions"):
        asyncio.run(caller.ask(make_call(2)))


@pytest.mark.parametrize("sign_of_life", [ANSWER, BUSY], ids=["answer", "error"])
def test_where_anything_was_answered_connections_that_fail_are_failed_calls(
    journal: Journal, sign_of_life: Step
) -> None:
    provider = ScriptedProvider(script={TURN: [sign_of_life]}, default=REFUSED)
    caller = make_caller(provider, journal, max_retries=4, concurrency=2)
    ask_all(caller, 1)
    assert {getattr(answer, "kind", None) for answer in ask_all(caller, 9)[1:]} == {CallErrorKind.CONNECTION}


@pytest.mark.parametrize("max_retries", [0, 1])
def test_questions_that_were_tried_less_often_say_nothing(journal: Journal, max_retries: int) -> None:
    caller = make_caller(ScriptedProvider(default=REFUSED), journal, max_retries=max_retries, concurrency=2)
    assert [type(answer) for answer in ask_all(caller, 9)] == [CallFailure] * 9


@pytest.mark.parametrize(
    ("provider", "options"),
    [
        ("openai", {"api_key_env": None}),
        ("http", {"path": "/ask", "input_tokens_path": "$.in", "output_tokens_path": "$.out"}),
        ("anthropic", {}),
    ],
)
def test_a_dead_address_is_told_within_seconds_and_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str, options: dict[str, Any]
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-the-tests")
    version = make_version(
        provider=provider, concurrency=3, max_tokens_total=10**6, options={"base_url": NOWHERE, **options}
    )

    async def ask(journal: Journal) -> Caller:
        asked = create(version, Environment())
        caller = Caller(asked, journal, version, retries=RetryPolicy(first_pause_s=0.01))
        async with asked:
            with pytest.raises(FatalCallError, match=f"provider '{provider}' cannot be reached at {NOWHERE}"):
                await run_together([worker(caller, turn) for turn in range(9)])
        return caller

    async def worker(caller: Caller, turn: int) -> None:
        await caller.ask(make_call(turn, text=f"Question {turn}?"))

    with SqliteJournal(tmp_path / "j.sqlite") as journal:
        assert asyncio.run(asyncio.wait_for(ask(journal), 60)).counters.tokens == 0

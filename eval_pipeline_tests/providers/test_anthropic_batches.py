"""Message batches of the Anthropic API: handed in, looked at, listed, read; on a real socket with the real SDK."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from eval_pipeline.core.model import CallErrorKind, Response, Usage
from eval_pipeline.providers.anthropic.provider import AnthropicProvider
from eval_pipeline.providers.base import Batch, BatchProvider, Call, CallError, FatalCallError
from eval_pipeline_tests.fakes.anthropic_batches import CANCELED, EXPIRED
from eval_pipeline_tests.fakes.anthropic_faults import (
    BATCH_CREATE,
    BATCH_GET,
    BATCH_LIST,
    BATCH_RESULTS,
    OVERLOADED,
    RATE_LIMITED,
    BrokenStream,
    Fault,
    LostReply,
    Malformed,
    OnOperation,
    Status,
)
from eval_pipeline_tests.fakes.anthropic_lab import case_call, version_for, with_provider
from eval_pipeline_tests.fakes.anthropic_messages import question
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
CALLS: Mapping[str, Call] = {f"call-{number}": case_call(f"Question {number}?", uses=3) for number in range(3)}

Outcomes = dict[str, Response | CallError]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


async def results(provider: AnthropicProvider, batch_id: str) -> Outcomes:
    return {custom_id: outcome async for custom_id, outcome in provider.batch_results(batch_id)}


def submit_and_read(server: AnthropicServer, calls: Mapping[str, Call] = CALLS) -> Outcomes:
    async def work(provider: AnthropicProvider) -> Outcomes:
        assert isinstance(provider, BatchProvider)
        batch = await provider.submit_batch(calls)
        while not batch.ended:
            seen = await provider.batch(batch.id)
            assert seen is not None
            batch = seen
        return await results(provider, batch.id)

    return with_provider(version_for(server), work)


def test_a_batch_is_taken_ends_after_some_polls_and_gives_every_answer() -> None:
    with AnthropicServer(question, batch_polls=3) as server:
        outcomes = submit_and_read(server)
        polls = len(server.requests(BATCH_GET))
    assert polls == 3 + 1  # the SDK looks once more for the address of the results
    answers = {custom_id: outcome for custom_id, outcome in outcomes.items() if isinstance(outcome, Response)}
    assert {custom_id: answer.text for custom_id, answer in answers.items()} == {
        f"call-{number}": f"Question {number}?" for number in range(3)
    }
    first = answers["call-0"]
    assert first.usage == Usage(1329, 3, 0, 1322)
    assert first.batch
    assert first.latency_ms is None
    assert first.metadata == {
        "batch_id": "msgbatch_000001",
        "message_id": "msg_000001",
        "model": "claude-fake-1",
        "service_tier": "batch",
        "sdk": "anthropic 2.12.0",
    }
    assert [answers[f"call-{number}"].usage.cache_read_tokens for number in range(3)] == [0, 1322, 1322]


@pytest.mark.parametrize(
    ("what", "kind", "retryable"),
    [
        (EXPIRED, "timeout", True),
        (CANCELED, "connection", True),
        ("overloaded_error", "overloaded", True),
        ("api_error", "overloaded", True),
        ("rate_limit_error", "rate_limited", True),
        ("invalid_request_error", "bad_request", False),
        ("authentication_error", "bad_request", True),  # asked singly, it ends the run with its own sentence
    ],
)
def test_a_request_without_an_answer_is_a_typed_error(what: str, kind: str, retryable: bool) -> None:
    with AnthropicServer(batch_entry=lambda custom_id, body: what if custom_id == "call-1" else None) as server:
        outcomes = submit_and_read(server)
    error = outcomes.pop("call-1")
    assert (error.kind, error.retryable) == (CallErrorKind(kind), retryable)
    assert all(isinstance(outcome, Response) for outcome in outcomes.values())


def test_how_a_batch_stands_and_that_its_results_may_be_archived() -> None:
    async def work(provider: AnthropicProvider) -> list[Batch | None]:
        taken = await provider.submit_batch(CALLS)
        found = [taken, *[await provider.batch(told) for told in (taken.id, taken.id, "other")]]
        server.model.batches[0].archived = True
        return [*found, await provider.batch(taken.id)]

    with AnthropicServer(batch_polls=2) as server:
        taken, waiting, ended, unknown, archived = with_provider(version_for(server), work)
    assert taken == waiting
    assert (taken.id, taken.requests, taken.ended) == ("msgbatch_000001", 3, False)
    assert abs(taken.created_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert (ended.requests, ended.ended) == (3, True)
    assert unknown is archived is None


def test_the_list_has_pages_and_stops_at_the_date() -> None:
    calls = {"one": case_call()}

    async def work(provider: AnthropicProvider) -> tuple[list[str], list[str]]:
        for _ in range(103):
            await provider.submit_batch(calls)
        for batch in server.model.batches[:100]:
            batch.created_at -= timedelta(days=2)
        yesterday = datetime.now(UTC) - timedelta(days=1)
        every = [batch.id async for batch in provider.batches(LONG_AGO)]
        return every, [batch.id async for batch in provider.batches(yesterday)]

    with AnthropicServer() as server:
        every, recent = with_provider(version_for(server), work)
        lists = len(server.requests(BATCH_LIST))
    assert every == [f"msgbatch_{number:06}" for number in range(103, 0, -1)]
    assert recent == every[:3]
    assert lists == 2 + 1


def test_a_batch_that_was_taken_although_the_reply_was_lost_is_in_the_list() -> None:
    async def work(provider: AnthropicProvider) -> list[Batch]:
        with pytest.raises(CallError, match="connection"):
            await provider.submit_batch(CALLS)
        return [batch async for batch in provider.batches(LONG_AGO)]

    with AnthropicServer(faults=OnOperation(BATCH_CREATE, [LostReply()])) as server:
        (found,) = with_provider(version_for(server), work)
    assert (found.id, found.requests) == ("msgbatch_000001", 3)
    assert list(server.model.batches[0].requests) == list(CALLS)


@pytest.mark.parametrize("operation", [BATCH_CREATE, BATCH_GET, BATCH_LIST, BATCH_RESULTS])
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (RATE_LIMITED, "rate_limited"),
        (OVERLOADED, "overloaded"),
        (Malformed(), "bad_response"),
        (BrokenStream(), "connection"),
        (Status(200), "bad_response"),  # as gateways have it
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_step_may_fail_and_succeeds_when_it_is_done_again(operation: str, fault: Fault, kind: str) -> None:
    async def work(provider: AnthropicProvider) -> tuple[CallError, Any]:
        async def step() -> Any:
            if operation == BATCH_CREATE:
                return await provider.submit_batch(CALLS)
            if operation == BATCH_GET:
                return await provider.batch("msgbatch_000001")
            if operation == BATCH_LIST:
                return [batch async for batch in provider.batches(LONG_AGO)]
            return await results(provider, "msgbatch_000001")

        if operation != BATCH_CREATE:
            await provider.submit_batch(CALLS)
        with pytest.raises(CallError) as told:
            await step()
        return told.value, await step()

    with AnthropicServer(faults=OnOperation(operation, [fault]), batch_polls=0) as server:
        error, done = with_provider(version_for(server), work)
    assert (error.kind, error.retryable) == (CallErrorKind(kind), True)
    assert done


def test_a_refused_key_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-wrong-0000")
    with AnthropicServer() as server, pytest.raises(FatalCallError, match="refuses the key"):
        submit_and_read(server)


def test_the_key_is_in_no_error_of_a_batch() -> None:
    fault = Status(500, echo_key=True)
    with AnthropicServer(faults=OnOperation(BATCH_CREATE, [fault])) as server, pytest.raises(CallError) as told:
        submit_and_read(server)
    assert "[redacted]" in told.value.message


def test_results_are_read_as_they_come() -> None:
    """Not all at once: the first is there although the last line never comes."""

    async def work(provider: AnthropicProvider) -> list[str]:
        await provider.submit_batch({f"call-{number}": case_call(f"{number}?") for number in range(40)})
        seen: list[str] = []

        async def read() -> None:
            async for custom_id, _ in provider.batch_results("msgbatch_000001"):
                seen.append(custom_id)

        with pytest.raises(CallError, match="connection"):
            await read()
        return seen

    with AnthropicServer(faults=OnOperation(BATCH_RESULTS, [BrokenStream()]), batch_polls=0) as server:
        seen = with_provider(version_for(server), work)
    assert 10 < len(seen) < 30
